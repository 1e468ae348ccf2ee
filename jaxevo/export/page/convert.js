// Images to inputs of the network: the counterpart of jaxevo's datasets/resize.py, to a
// grey level.
//
// An image is {height, width, channels, data}, data being bytes [height, width, channels].

const BOX = 20 / 28; // MNIST: the digit fills a 20x20 box in 28x28 pixels
const INK = 0.1; // of an image's brightest pixel; below it is background
const BITS = 22; // of a weight's fraction, as Pillow has them

/** An image of RGBA bytes without its transparency, which a form of no background refuses. */
export function opaque({height, width, data}, background) {
  const behind = background === "white" ? 255 : 0;
  const pixels = new Uint8Array(height * width * 3);
  for (let i = 0; i < height * width; i++) {
    const alpha = data[4 * i + 3] / 255;
    if (alpha < 1 && !background) {
      throw new Error("The image has transparent pixels, the training images had none.");
    }
    for (let c = 0; c < 3; c++) {
      pixels[3 * i + c] = Math.round(data[4 * i + c] * alpha + behind * (1 - alpha));
    }
  }
  return {height, width, channels: 3, data: pixels};
}

/**
 * An image of RGBA bytes whose colours are in the training images' range [black, white], as 0 to 255.
 *
 * A browser shows images of 16 bits as bytes, so a range of 0 to 65535 is one of 0 to 255.
 */
export function scaled({height, width, data}, [black, white]) {
  if (black === 0 && white === 65535) {
    return {height, width, data};
  }
  const found = Uint8Array.from(data, (value, i) => {
    if (i % 4 === 3) {
      return value;
    }
    if (data[i - i % 4 + 3] > 0 && (value < black || value > white)) {
      throw new Error(`The image has the value ${value}, the training images had ${black} to ${white}.`);
    }
    return Math.min(255, Math.max(0, even((value - black) * (255 / (white - black)))));
  });
  return {height, width, data: found};
}

/** The nearest whole number, of two the even one, as in NumPy. */
function even(value) {
  const found = Math.round(value);
  return found - value === 0.5 && found % 2 ? found - 1 : found;
}

/** The input of a network of this form: size [height, width], channels, resize. */
export function toInput(image, form) {
  const [height, width] = form.size;
  const boxed = form.resize === "mnist_box";
  if (image.channels === 3 && (form.channels === 1 || boxed)) {
    image = grey(image);
  }
  if (boxed) {
    image = placed(image, height, width);
  } else if (image.height !== height || image.width !== width) {
    image = stretched(image, height, width);
  }
  return image.channels < form.channels ? repeated(image, form.channels) : image;
}

function grey({height, width, data}) {
  const found = Uint8Array.from({length: height * width}, (_, i) =>
    Math.round(0.299 * data[3 * i] + 0.587 * data[3 * i + 1] + 0.114 * data[3 * i + 2]));
  return {height, width, channels: 1, data: found};
}

function repeated({height, width, data}, channels) {
  const found = Uint8Array.from({length: data.length * channels},
    (_, i) => data[Math.floor(i / channels)]);
  return {height, width, channels, data: found};
}

/** Pillow's bilinear filter, which is as wide as the pixels of a smaller image. */
function stretched(image, height, width) {
  return turned(resizedRows(turned(resizedRows(image, width)), height));
}

function resizedRows({height, width, channels, data}, wanted) {
  const found = new Uint8Array(height * wanted * channels);
  for (let x = 0; x < wanted; x++) {
    const [first, weights] = filter(x, width, wanted);
    for (let y = 0; y < height; y++) {
      for (let c = 0; c < channels; c++) {
        let sum = 2 ** (BITS - 1);
        weights.forEach((weight, i) => {
          sum += weight * data[(y * width + first + i) * channels + c];
        });
        found[(y * wanted + x) * channels + c] = Math.min(255, Math.floor(sum / 2 ** BITS));
      }
    }
  }
  return {height, width: wanted, channels, data: found};
}

/** The first of the old pixels that make up the new one, and their weights. */
function filter(x, side, wanted) {
  const scale = side / wanted;
  const support = Math.max(scale, 1);
  const centre = (x + 0.5) * scale;
  const first = Math.max(0, Math.trunc(centre - support + 0.5));
  const end = Math.min(side, Math.trunc(centre + support + 0.5));
  const heights = Array.from({length: end - first}, (_, i) =>
    Math.max(0, 1 - Math.abs((first + i - centre + 0.5) / support)));
  const total = heights.reduce((a, b) => a + b, 0);
  return [first, heights.map((value) => Math.floor(value / total * 2 ** BITS + 0.5))];
}

function turned({height, width, channels, data}) {
  const found = new Uint8Array(data.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let c = 0; c < channels; c++) {
        found[(x * height + y) * channels + c] = data[(y * width + x) * channels + c];
      }
    }
  }
  return {height: width, width: height, channels, data: found};
}

/** The ink in a box of 20/28 of the size, its centre of mass in the middle, as MNIST was made. */
function placed(image, height, width) {
  const canvas = {height, width, channels: 1, data: new Uint8Array(height * width)};
  const crop = ink(image);
  if (!crop) {
    return canvas;
  }
  const scale = Math.min(rounded(height * BOX) / crop.height, rounded(width * BOX) / crop.width);
  const sides = [crop.height, crop.width].map((side) => Math.max(1, rounded(side * scale)));
  const digit = stretched(crop, ...sides);
  if (digit.data.every((value) => value === 0)) {
    return canvas;
  }
  const across = turned(digit);
  const top = offset(digit, height);
  const left = offset(across, width);
  for (let y = Math.max(0, -top); y < Math.min(digit.height, height - top); y++) {
    for (let x = Math.max(0, -left); x < Math.min(digit.width, width - left); x++) {
      canvas.data[(y + top) * width + x + left] = digit.data[y * digit.width + x];
    }
  }
  return canvas;
}

/** The part of a grey image within the bounds of its ink; nothing if there is none. */
function ink({height, width, data}) {
  const limit = INK * data.reduce((a, b) => Math.max(a, b), 1);
  let [top, bottom, left, right] = [height, -1, width, -1];
  data.forEach((value, i) => {
    if (value > limit) {
      const [y, x] = [Math.floor(i / width), i % width];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      [left, right] = [Math.min(left, x), Math.max(right, x)];
    }
  });
  if (bottom < 0) {
    return null;
  }
  const [rows, columns] = [bottom - top + 1, right - left + 1];
  const found = new Uint8Array(rows * columns);
  for (let y = 0; y < rows; y++) {
    const start = (top + y) * width + left;
    found.set(data.subarray(start, start + columns), y * columns);
  }
  return {height: rows, width: columns, channels: 1, data: found};
}

/** Where a digit's first row lies so that its centre of mass is on pixel `side / 2`. */
function offset({width, data}, side) {
  let [mass, moment] = [0, 0];
  data.forEach((value, i) => {
    mass += value;
    moment += value * Math.floor(i / width);
  });
  return rounded(side / 2 - moment / mass);
}

/** The nearest whole number; of two, the even one, as Python has it. */
function rounded(value) {
  const below = Math.floor(value);
  if (value - below === 0.5) {
    return below % 2 === 0 ? below : below + 1;
  }
  return Math.round(value);
}
