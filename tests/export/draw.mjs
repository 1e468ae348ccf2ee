// Draws digits by mouse on the page at an address, and prints as JSON what the page answers.
//
//     node draw.mjs ADDRESS NODE_MODULES [SCREENSHOT]

import {createRequire} from "node:module";

const [address, modules, screenshot] = process.argv.slice(2);
const {chromium} = createRequire(`${modules}/`)("playwright-core");

/** Points of a part of an ellipse, angles in degrees. */
function arc(x, y, height, from, to, width = height) {
  return Array.from({length: 25}, (_, i) => {
    const angle = (from + (to - from) * i / 24) * Math.PI / 180;
    return [x + width * Math.cos(angle), y + height * Math.sin(angle)];
  });
}

// Strokes on a paper of 280 pixels a side.
const DIGITS = {
  0: [arc(140, 140, 80, 0, 360, 55)],
  1: [[[140, 60], [140, 220]]],
  2: [[...arc(140, 100, 45, -170, 30), [95, 215]], [[95, 215], [195, 215]]],
  3: [arc(135, 100, 40, -140, 90), arc(135, 180, 40, -90, 140)],
  4: [[[110, 60], [95, 150], [190, 150]], [[175, 60], [165, 225]]],
  5: [[[190, 65], [110, 65], [105, 130], ...arc(135, 170, 45, -110, 140)]],
  7: [[[90, 70], [190, 70], [130, 220]]],
  8: [arc(140, 100, 36, 90, 450), arc(140, 178, 42, -90, 270)],
};

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({viewport: {width: 540, height: 400}});
const errors = [];
page.on("pageerror", (error) => errors.push(error.message));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
const answer = () => page.textContent("#answer");
const answered = () => page.waitForFunction(() => document.getElementById("answer").textContent);
await page.goto(address);
await answered();
const answers = {};
const box = await page.locator("#paper").boundingBox();
for (const [digit, strokes] of Object.entries(DIGITS)) {
  await page.click("#clear");
  for (const [first, ...others] of strokes) {
    await page.mouse.move(box.x + first[0], box.y + first[1]);
    await page.mouse.down();
    for (const [x, y] of others) {
      await page.mouse.move(box.x + x, box.y + y, {steps: 4});
    }
    // The answer to the whole drawing is that after the last stroke.
    await page.evaluate(() => { document.getElementById("answer").textContent = ""; });
    await page.mouse.up();
    await answered();
  }
  answers[digit] = await answer();
  if (screenshot && digit === "2") {
    await page.screenshot({path: screenshot});
  }
}
await browser.close();
console.log(JSON.stringify({answers, errors}));
