// Draws or picks an image, converts it as the training images were, and shows the network's answer.

import {opaque, scaled, toInput} from "./convert.js";

const SHOWN = 5; // classes
const find = (id) => document.getElementById(id);

function tell(text) {
  find("answer").textContent = text;
}

/** What a canvas shows, as RGBA. */
function pixels(canvas) {
  return canvas.getContext("2d", {willReadFrequently: true})
    .getImageData(0, 0, canvas.width, canvas.height);
}

async function start() {
  if (!window.ort) {
    throw new Error("The files of onnxruntime-web are missing in this folder.");
  }
  ort.env.wasm.numThreads = 1; // more need headers that a plain server does not send
  const answer = await fetch("model.json");
  const model = await answer.json();
  const session = await ort.InferenceSession.create("model.onnx");
  const classify = (image, form) => show(model, session, toInput(image, form));
  if (model.drawn) {
    draw((canvas) => classify(opaque(pixels(canvas), "black"), {...model.form, resize: model.drawn}));
  } else {
    const {range, background} = model.form;
    pick(async (canvas) => classify(opaque(scaled(pixels(canvas), range), background), model.form));
  }
  tell("Ready.");
}

async function show(model, session, input) {
  preview(input);
  const {height, width, channels, data} = input;
  const images = new ort.Tensor("uint8", data, [1, height, width, channels]);
  const {probabilities} = await session.run({images});
  const found = model.class_names.map((name, i) => [name, probabilities.data[i]]);
  found.sort((a, b) => b[1] - a[1]);
  tell(`${found[0][0]}, ${percent(found[0][1])}`);
  // Names of classes are anyone's text: never markup.
  find("classes").replaceChildren(...found.slice(0, SHOWN).map(([name, probability]) => {
    const row = document.createElement("tr");
    row.insertCell().textContent = name;
    row.insertCell().textContent = percent(probability);
    return row;
  }));
}

function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}

function preview({height, width, channels, data}) {
  const canvas = find("seen");
  [canvas.width, canvas.height] = [width, height];
  const image = new ImageData(width, height);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) {
      image.data[4 * i + c] = data[i * channels + c % channels];
    }
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** White strokes on black, as bright on dark is what a box of ink is sought in. */
function draw(classify) {
  const paper = find("paper");
  const pen = paper.getContext("2d", {willReadFrequently: true});
  const clear = () => {
    pen.fillStyle = "black";
    pen.fillRect(0, 0, paper.width, paper.height);
  };
  Object.assign(pen, {strokeStyle: "white", lineCap: "round", lineJoin: "round"});
  pen.lineWidth = paper.width / 13;
  let last = null;
  const stroke = (event) => {
    if (last) {
      pen.beginPath();
      pen.moveTo(...last);
      last = [event.offsetX, event.offsetY];
      pen.lineTo(...last);
      pen.stroke();
    }
  };
  paper.addEventListener("pointerdown", (event) => {
    paper.setPointerCapture(event.pointerId);
    last = [event.offsetX, event.offsetY];
    stroke(event);
  });
  paper.addEventListener("pointermove", stroke);
  paper.addEventListener("pointercancel", () => { last = null; });
  paper.addEventListener("pointerup", () => {
    last = null;
    classify(paper).catch((error) => tell(error.message));
  });
  find("clear").addEventListener("click", clear);
  clear();
  find("drawing").hidden = false;
}

function pick(classify) {
  find("file").addEventListener("change", async (event) => {
    try {
      // The pixels as they are stored, turned as the camera says.
      const options = {colorSpaceConversion: "none", premultiplyAlpha: "none"};
      const bitmap = await createImageBitmap(event.target.files[0], options);
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
      canvas.getContext("2d").drawImage(bitmap, 0, 0);
      await classify(canvas);
    } catch (error) {
      tell(error.message);
    }
  });
  find("picking").hidden = false;
}

window.addEventListener("DOMContentLoaded", () => start().catch((error) => tell(error.message)));
