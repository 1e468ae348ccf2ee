// Forward and backward pass and prediction of a cell. Compiled once for each instruction set.
//
// Forward, for each node b and operand o, with s the state it reads (as batch norm leaves it), W
// its pointwise weights, and sums and means over pixels and images:
//
//     z = spatial(s)                          [C, H, W, N], C = 2D (D for the input)
//     y = W z                                 [D, H, W, N], half of node b's state
//     m = mean(y), v = mean((y - m)^2)        [D]
//     f = scale / sqrt(v + epsilon)           the state's readers see f (y - m) + bias
//
// A full convolution has y = conv(s) instead of both (`full.h`). Identity and pools of the input
// have neither W nor batch norm: y = z. The reader R [E, 2D] of
// every unused state s adds R s (of a reduction cell, R times the means of 2x2 pixels) to the
// output; the classifier gets the mean of s over pixels. With `relu` all of them get max(s, 0).
//
// Backward, nodes in reverse, with g the gradient of what the readers see, and n = H W N:
//
//     dbias = sum(g),  dscale = sum(g (y - m)) / sqrt(v + epsilon)
//     dy = f (g - dbias / n - (y - m) / sqrt(v + epsilon) dscale / n)
//     dW = sum(dy z^T),  dz = W^T dy,  ds += spatial's gradient at dz
//
// z is computed again, since all of them would take more memory than all states. The first to write
// a state's gradient replaces what lies there, others add, so nothing is set to zero first.
//
// Work is divided by blocks of images (`layout.h`), never by threads, and what blocks contribute to
// a sum is added in their order: any number of threads computes the same bits.

#include "cell.h"

#include "full.h"
#include "layout.h"
#include "products.h"
#include "spatial.h"
#include "vectors.h"

namespace jaxevo::JAXEVO_BUILD {
namespace {

template <class Task>
void for_each(Threads threads, int tasks, const Task& task) {
  threads.run(
      threads.team, tasks,
      [](const void* context, int i) { (*static_cast<const Task*>(context))(i); }, &task);
}

// Memory of a thread between tasks: nothing in it outlives one.
struct Scratch {
  Planes planes;
  FullPlanes full;
  VectorBuffer z, dz, chunk, other_chunk, states;
};

Scratch& scratch() {
  static thread_local Scratch memory;
  return memory;
}

void clear(float* values, int64_t size) {
  for (int64_t i = 0; i < size; i++) values[i] = 0.0f;
}

// ------------------------------------------------------------------------------------ descriptions

// What all passes over a cell know.
struct Cell {
  Cell(const Shape& shape, const Genome& genome, const Weights& weights)
      : shape(shape),
        genome(genome),
        weights(weights),
        layout(shape),
        image{shape.height, shape.width} {}

  int channels() const { return shape.channels; }
  int operand(int node, int o) const { return node * kOperands + o; }
  int state(int operand) const { return genome.states[operand]; }
  int operation(int operand) const { return genome.operations[operand]; }
  bool projected(int operand) const {
    return state(operand) > 0 || convolves(operand);
  }
  bool convolves(int operand) const { return kernel_size(operation(operand)) > 0; }
  bool full(int operand) const { return shape.full && convolves(operand); }

  // The weights of an operand's 1x1 convolution, [D, 2D].
  Matrix pointwise(int operand) const {
    const int64_t size = static_cast<int64_t>(channels()) * 2 * channels();
    return {weights.pointwise + operand * size, 2 * channels(), 1};
  }
  // A node's reader, [E, 2D].
  Matrix reader(int node) const {
    const int64_t size = static_cast<int64_t>(shape.reader_channels) * 2 * channels();
    return {weights.readers + node * size, 2 * channels(), 1};
  }
  // Floats of an operand's kernels.
  int64_t slot_size() const {
    return int64_t{2} * channels() * kSlotSize * (shape.full ? channels() : 1);
  }
  const float* slot(int operand) const { return weights.kernels + operand * slot_size(); }
  FullKernel full_kernel(int operand) const {
    return {slot(operand), kernel_size(operation(operand)), channels(),
            layout.width(state(operand))};
  }

  // The image that the reader sees.
  Image read_image() const {
    const int divisor = shape.kind == kReduction ? 2 : 1;
    return {image.height / divisor, image.width / divisor};
  }

  Shape shape;
  Genome genome;
  Weights weights;
  Layout layout;
  Image image;
};

// Batch norm as readers apply it: factor * y + shift for each channel of each state.
struct Affine {
  explicit Affine(const Cell& cell)
      : width(2 * cell.channels()), factor(size(cell)), shift(size(cell)) {
    for (int i = 0; i < size(cell); i++) factor[i] = 1.0f, shift[i] = 0.0f;
  }
  static int size(const Cell& cell) { return (cell.shape.slots + 1) * 2 * cell.channels(); }

  // Sets that of an operand's half of its node's state.
  void set(const Cell& cell, int operand, const float* mean, const float* variance) {
    const int channels = cell.channels(), row = operand / kOperands + 1, o = operand % kOperands;
    for (int c = 0; c < channels; c++) {
      const int from = operand * channels + c, to = row * width + o * channels + c;
      factor[to] = cell.weights.scale[from] / __builtin_sqrtf(variance[from] + kEpsilon);
      shift[to] = cell.weights.bias[from] - mean[from] * factor[to];
    }
  }
  void set_all(const Cell& cell, const float* mean, const float* variance) {
    for (int operand = 0; operand < cell.genome.nodes * kOperands; operand++)
      if (cell.projected(operand)) set(cell, operand, mean, variance);
  }

  int width;
  Buffer<float> factor, shift;
};

// The states of one block, or their gradients.
struct Block {
  const Cell& cell;
  Vector* base;
  int valid;  // images in it
  Vector* channel(int row, int c) const {
    return base + cell.layout.offset(row) + static_cast<ptrdiff_t>(c) * cell.layout.plane;
  }
  // The half of a node's state that an operand makes.
  Rows half(int operand) const {
    return {channel(operand / kOperands + 1, operand % kOperands * cell.channels()),
            cell.layout.plane};
  }
};

Block block_of(const Cell& cell, float* states, int block) {
  Vector* base = reinterpret_cast<Vector*>(states) + block * cell.layout.block_size();
  return {cell, base, cell.layout.valid(block)};
}

Channel normalized(const Block& states, const Affine& affine, int row, int c) {
  const int index = row * affine.width + c;
  return {states.channel(row, c), affine.factor[index], affine.shift[index]};
}

// Blocks side by side write to the same cache lines of XLA's arrays, so threads that begin at the
// same time get blocks that lie half of the batch apart.
int spread(int task, int blocks) { return task % 2 * ((blocks + 1) / 2) + task / 2; }

// -------------------------------------- between XLA's arrays [C, pixels, N] and a block's vectors

Vector gather(const float* images, int valid) {
  Vector pixel{};
  if (valid == kLanes) return *reinterpret_cast<const Vector*>(images);
  for (int lane = 0; lane < valid; lane++) pixel[lane] = images[lane];
  return pixel;
}

void scatter(Vector pixel, float* images, int valid) {
  if (valid == kLanes) {
    *reinterpret_cast<Vector*>(images) = pixel;
  } else {
    for (int lane = 0; lane < valid; lane++) images[lane] = pixel[lane];
  }
}

void load_input(const Block& states, int block, const float* x) {
  const Layout& layout = states.cell.layout;
  for (int c = 0; c < layout.channels; c++) {
    Vector* to = states.channel(0, c);
    const float* from =
        x + static_cast<int64_t>(c) * layout.pixels * layout.images + block * kLanes;
    for (int i = 0; i < layout.pixels; i++)
      to[i] = gather(from + int64_t{i} * layout.images, states.valid);
  }
}

void store_input_gradient(const Block& gradients, int block, bool written, float* x) {
  const Layout& layout = gradients.cell.layout;
  for (int c = 0; c < layout.channels; c++) {
    const Vector* from = gradients.channel(0, c);
    float* to = x + static_cast<int64_t>(c) * layout.pixels * layout.images + block * kLanes;
    for (int i = 0; i < layout.pixels; i++)
      scatter(written ? from[i] : Vector{}, to + int64_t{i} * layout.images, gradients.valid);
  }
}

// ----------------------------------------------------------------------------------------- forward

// All channels of an operand before its 1x1 convolution.
Rows apply_spatial(const Block& states, const Affine& affine, int operand, Vector* z) {
  const Cell& cell = states.cell;
  const int row = cell.state(operand);
  for (int c = 0; c < cell.layout.width(row); c++) {
    const float* kernel = cell.slot(operand) + int64_t{c} * kSlotSize;
    Vector* to = z + static_cast<ptrdiff_t>(c) * cell.layout.plane;
    const Channel x = normalized(states, affine, row, c);
    spatial(cell.operation(operand), scratch().planes, cell.image, x, kernel, to);
  }
  return {z, cell.layout.plane};
}

Vector* reserve_operand(VectorBuffer& buffer, const Cell& cell) {
  return buffer.reserve(static_cast<ptrdiff_t>(2) * cell.channels() * cell.layout.plane);
}

// Writes an operand's half of its node's state.
void compute_operand(const Block& states, const Affine& affine, int operand) {
  const Cell& cell = states.cell;
  const Rows y = states.half(operand);
  if (cell.full(operand)) {
    const int row = cell.state(operand);
    const auto x = [&](int c) { return normalized(states, affine, row, c); };
    full_convolution(scratch().full, cell.full_kernel(operand), cell.image, x, y);
    return;
  }
  if (!cell.projected(operand)) {
    apply_spatial(states, affine, operand, y.data);
    return;
  }
  const Rows z = apply_spatial(states, affine, operand, reserve_operand(scratch().z, cell));
  const int depth = cell.layout.width(cell.state(operand));
  product<false>(cell.channels(), depth, cell.layout.pixels, cell.pointwise(operand), z, y);
}

// The moments of one block's images, [D, 2]: mean, and sum of squared differences from it.
void block_moments(const Block& states, int operand, float* moments) {
  const Rows y = states.half(operand);
  const int pixels = states.cell.layout.pixels;
  const float number = static_cast<float>(pixels) * states.valid;
  for (int c = 0; c < states.cell.channels(); c++) {
    Vector sum{}, squares{};
    for (int i = 0; i < pixels; i++) sum += y[c][i];
    const float mean = sum_lanes(sum, states.valid) / number;
    for (int i = 0; i < pixels; i++) squares += (y[c][i] - mean) * (y[c][i] - mean);
    moments[2 * c] = mean;
    moments[2 * c + 1] = sum_lanes(squares, states.valid);
  }
}

// Merges the blocks' moments: differences from a block's mean, and of that mean from the whole's.
void merge_moments(const Cell& cell, const float* parts, int part_stride, float* mean,
                   float* variance) {
  const Layout& layout = cell.layout;
  for (int c = 0; c < cell.channels(); c++) {
    double sum = 0, squares = 0;
    for (int block = 0; block < layout.blocks; block++)
      sum += static_cast<double>(parts[block * part_stride + 2 * c]) * layout.valid(block);
    const double whole = sum / layout.images;
    for (int block = 0; block < layout.blocks; block++) {
      const float* part = parts + block * part_stride + 2 * c;
      const double away = part[0] - whole;
      squares += part[1] + away * away * layout.valid(block) * layout.pixels;
    }
    mean[c] = static_cast<float>(whole);
    variance[c] =
        static_cast<float>(squares / (static_cast<double>(layout.images) * layout.pixels));
  }
}

// Some rows of the image that the reader sees, as pixels: a chunk of work.
struct Chunk {
  int row, rows;  // in the reader's image
  int first, pixels;
};

template <class Work>
void for_each_chunk(const Cell& cell, Work work) {
  const Image image = cell.read_image();
  const int step = image.width < kChunk ? kChunk / image.width : 1;
  for (int row = 0; row < image.height; row += step) {
    const int rows = least(step, image.height - row);
    work(Chunk{row, rows, row * image.width, rows * image.width});
  }
}

int chunk_size(const Cell& cell) { return kChunk + cell.read_image().width; }

// Gives `work` a channel of an unused state as a function of the pixel, rectified if it shall be.
template <class Work>
void with_outlet(const Cell& cell, const Channel& x, const Work& work) {
  if (cell.shape.relu) {
    work([=](int i) { return relu(x[i]); });
  } else {
    work([=](int i) { return x[i]; });
  }
}

// A node's state as the reader sees it, normalized and for a reduction cell halved, [2D, chunk].
void read_chunk(const Block& states, const Affine& affine, int node, Chunk chunk, Rows to) {
  const Cell& cell = states.cell;
  const int width = cell.image.width;
  const int half = cell.read_image().width;
  for (int c = 0; c < 2 * cell.channels(); c++)
    with_outlet(cell, normalized(states, affine, node + 1, c), [&](auto x) {
      if (cell.shape.kind != kReduction) {
        for (int i = 0; i < chunk.pixels; i++) to[c][i] = x(chunk.first + i);
        return;
      }
      for (int h = 0; h < chunk.rows; h++)
        for (int w = 0; w < half; w++) {
          const int corner = 2 * (chunk.row + h) * width + 2 * w;
          const Vector sum = x(corner) + x(corner + 1) + x(corner + width) + x(corner + width + 1);
          to[c][h * half + w] = sum * 0.25f;
        }
    });
}

// What the next cell gets of a block: the sum over unused states of their readers' products.
void read_out(const Block& states, const Affine& affine, int block, float* out) {
  const Cell& cell = states.cell;
  const int stride = chunk_size(cell);
  const int readers = cell.shape.reader_channels, images = cell.shape.images;
  const Image image = cell.read_image();
  const Rows seen{scratch().chunk.reserve(int64_t{2} * cell.channels() * stride), stride};
  const Rows sums{scratch().other_chunk.reserve(int64_t{readers} * stride), stride};
  for_each_chunk(cell, [&](Chunk chunk) {
    for (int e = 0; e < readers; e++)
      for (int i = 0; i < chunk.pixels; i++) sums[e][i] = Vector{};
    for (int node = 0; node < cell.genome.nodes; node++) {
      if (!cell.genome.unused[node]) continue;
      read_chunk(states, affine, node, chunk, seen);
      product<true>(readers, 2 * cell.channels(), chunk.pixels, cell.reader(node), seen, sums);
    }
    for (int e = 0; e < readers; e++) {
      const int64_t pixel = static_cast<int64_t>(e) * image.height * image.width + chunk.first;
      for (int i = 0; i < chunk.pixels; i++)
        scatter(sums[e][i], out + (pixel + i) * images + block * kLanes, states.valid);
    }
  });
}

// What the classifier gets of a block: every unused state's means over pixels, [B, 2D, N].
void read_means(const Block& states, const Affine& affine, int block, float* out) {
  const Cell& cell = states.cell;
  const int channels = 2 * cell.channels(), pixels = cell.layout.pixels;
  for (int node = 0; node < cell.shape.slots; node++)
    for (int c = 0; c < channels; c++) {
      Vector mean{};
      if (node < cell.genome.nodes && cell.genome.unused[node]) {
        with_outlet(cell, normalized(states, affine, node + 1, c), [&](auto x) {
          for (int i = 0; i < pixels; i++) mean += x(i);
        });
        mean *= 1.0f / static_cast<float>(pixels);
      }
      const int64_t row = static_cast<int64_t>(node) * channels + c;
      scatter(mean, out + row * cell.shape.images + block * kLanes, states.valid);
    }
}

void read(const Block& states, const Affine& affine, int block, float* out) {
  if (states.cell.shape.kind == kClassifier) {
    read_means(states, affine, block, out);
  } else {
    read_out(states, affine, block, out);
  }
}

void forward(const Shape& shape, const Genome& genome, const Weights& weights, Threads threads,
             const float* x, float* out, float* mean, float* variance, float* states) {
  const Cell cell(shape, genome, weights);
  const int blocks = cell.layout.blocks, channels = cell.channels(), part = 2 * channels;
  Affine affine(cell);
  Buffer<float> moments(int64_t{kOperands} * blocks * part);
  for (int i = 0; i < shape.slots * kOperands * channels; i++) mean[i] = 0.0f, variance[i] = 1.0f;

  for_each(threads, blocks, [&](int i) {
    const int block = spread(i, blocks);
    load_input(block_of(cell, states, block), block, x);
  });
  for (int node = 0; node < genome.nodes; node++) {
    for_each(threads, kOperands * blocks, [&](int i) {
      const int o = i / blocks, block = i % blocks, operand = cell.operand(node, o);
      const Block own = block_of(cell, states, block);
      compute_operand(own, affine, operand);
      if (cell.projected(operand)) block_moments(own, operand, moments.data() + int64_t{i} * part);
    });
    for (int o = 0; o < kOperands; o++) {
      const int operand = cell.operand(node, o), first = operand * channels;
      if (!cell.projected(operand)) continue;
      const float* parts = moments.data() + int64_t{o} * blocks * part;
      merge_moments(cell, parts, part, mean + first, variance + first);
      affine.set(cell, operand, mean, variance);
    }
  }
  for_each(threads, blocks, [&](int i) {
    const int block = spread(i, blocks);
    read(block_of(cell, states, block), affine, block, out);
  });
}

// With known moments blocks have nothing in common, and each thread needs one block's states only.
void predict(const Shape& shape, const Genome& genome, const Weights& weights, Threads threads,
             const float* mean, const float* variance, const float* x, float* out) {
  const Cell cell(shape, genome, weights);
  Affine affine(cell);
  affine.set_all(cell, mean, variance);
  for_each(threads, cell.layout.blocks, [&](int i) {
    const int block = spread(i, cell.layout.blocks);
    const Block states{cell, scratch().states.reserve(cell.layout.block_size()),
                       cell.layout.valid(block)};
    load_input(states, block, x);
    for (int operand = 0; operand < kOperands * genome.nodes; operand++)
      compute_operand(states, affine, operand);
    read(states, affine, block, out);
  });
}

// ---------------------------------------------------------------------------------------- backward

// The backward pass of one cell; its functions take a block's number.
struct Backward {
  const Cell& cell;
  Affine& affine;
  float* states;  // only read
  float* gradients;
  const float* mean;
  const float* variance;
  const float* out_gradient;
  // Each block's share in sums over images.
  Buffer<float> reader_parts{}, pointwise_parts{}, kernel_parts{}, norm_parts{};
  Buffer<float> norm_sums{};  // [2, D, 2]: sum(g), sum(g (y - m))
  Buffer<bool> written{};     // whether a state has a gradient yet

  int channels() const { return cell.channels(); }
  int blocks() const { return cell.layout.blocks; }
  int64_t reader_size() const { return int64_t{cell.shape.reader_channels} * 2 * channels(); }
  int64_t pointwise_size() const { return int64_t{channels()} * 2 * channels(); }
  float inverse_deviation(int operand, int c) const {
    return 1.0f / __builtin_sqrtf(variance[operand * channels() + c] + kEpsilon);
  }

  void reserve() {
    reader_parts.reserve(blocks() * reader_size());
    pointwise_parts.reserve(kOperands * blocks() * pointwise_size());
    kernel_parts.reserve(kOperands * blocks() * cell.slot_size());
    norm_parts.reserve(int64_t{kOperands} * blocks() * 2 * channels());
    norm_sums.reserve(kOperands * 2 * channels());
    written.reserve(cell.shape.slots + 1);
    for (int row = 0; row <= cell.shape.slots; row++) written[row] = false;
  }

  // A part of the block's share in a sum over blocks.
  float* part(Buffer<float>& parts, int64_t size, int o, int block) {
    return parts.data() + (int64_t{o} * blocks() + block) * size;
  }

  // out += the blocks' parts, in their order.
  void add_parts(Buffer<float>& parts, int64_t size, int o, float* out) {
    for (int block = 0; block < blocks(); block++) {
      const float* from = part(parts, size, o, block);
      for (int64_t i = 0; i < size; i++) out[i] += from[i];
    }
  }

  void reader_means(int block, int node);
  void reader(int block, int node);
  void undo_relu(int block, int node);
  void spread_halved(const Block& to, int node, Chunk chunk, ConstRows from);
  void norm(int block, int operand);
  void undo_norm(int block, int operand, Chunk chunk);
  Rows project(int block, int operand);
  void operand(int block, int operand, bool add);
  void full_operand(int block, int operand, bool add);
};

// Through the ReLU of what leaves the cell, in place: what is not above zero has no gradient.
void Backward::undo_relu(int block, int node) {
  const Block from = block_of(cell, states, block), to = block_of(cell, gradients, block);
  for (int c = 0; c < 2 * channels(); c++) {
    const Channel x = normalized(from, affine, node + 1, c);
    Vector* g = to.channel(node + 1, c);
    for (int i = 0; i < cell.layout.pixels; i++) g[i] = x[i] > 0.0f ? g[i] : Vector{};
  }
}

// The gradient of a state that the classifier reads: every pixel has an equal share.
void Backward::reader_means(int block, int node) {
  const Block to = block_of(cell, gradients, block);
  const float share = 1.0f / static_cast<float>(cell.layout.pixels);
  for (int c = 0; c < 2 * channels(); c++) {
    const int64_t row = static_cast<int64_t>(node) * 2 * channels() + c;
    const Vector g =
        gather(out_gradient + row * cell.shape.images + block * kLanes, to.valid) * share;
    for (int i = 0; i < cell.layout.pixels; i++) to.channel(node + 1, c)[i] = g;
  }
}

// Gives each of 2x2 pixels a quarter of their mean's gradient; an odd last row or column gets none.
void Backward::spread_halved(const Block& to, int node, Chunk chunk, ConstRows from) {
  const int half = cell.read_image().width, width = cell.image.width;
  const bool last = chunk.row + chunk.rows == cell.read_image().height;
  const int end = last ? cell.image.height : 2 * (chunk.row + chunk.rows);
  for (int c = 0; c < 2 * channels(); c++)
    for (int h = 2 * chunk.row; h < end; h++) {
      Vector* row = to.channel(node + 1, c) + h * width;
      const bool inside = h / 2 < chunk.row + chunk.rows;
      for (int w = 0; w < width; w++)
        row[w] =
            inside && w / 2 < half ? from[c][(h / 2 - chunk.row) * half + w / 2] * 0.25f : Vector{};
    }
}

// The gradients of a reader and of the state it reads.
void Backward::reader(int block, int node) {
  const Block from = block_of(cell, states, block), to = block_of(cell, gradients, block);
  const int stride = chunk_size(cell), readers = cell.shape.reader_channels, wide = 2 * channels();
  const Image image = cell.read_image();
  const Rows seen{scratch().chunk.reserve(int64_t{wide} * stride), stride};
  const Rows g{scratch().other_chunk.reserve(int64_t{readers} * stride), stride};
  float* reader_part = part(reader_parts, reader_size(), 0, block);
  clear(reader_part, reader_size());
  for_each_chunk(cell, [&](Chunk chunk) {
    for (int e = 0; e < readers; e++) {
      const int64_t pixel = static_cast<int64_t>(e) * image.height * image.width + chunk.first;
      for (int i = 0; i < chunk.pixels; i++)
        g[e][i] = gather(out_gradient + (pixel + i) * cell.shape.images + block * kLanes, to.valid);
    }
    read_chunk(from, affine, node, chunk, seen);
    add_outer(readers, wide, chunk.pixels, to.valid, g, seen, reader_part, wide);
    const Matrix weights = cell.reader(node).transposed();
    if (cell.shape.kind == kReduction) {
      product<false>(wide, readers, chunk.pixels, weights, g, seen);
      spread_halved(to, node, chunk, seen);
    } else {
      const Rows state{to.channel(node + 1, 0), cell.layout.plane};
      product<false>(wide, readers, chunk.pixels, weights, g, state.from(0, chunk.first));
    }
  });
}

// The block's share of sum(g) and sum(g (y - m)).
void Backward::norm(int block, int operand) {
  const Block from = block_of(cell, states, block), to = block_of(cell, gradients, block);
  const Rows y = from.half(operand), g = to.half(operand);
  float* sums = part(norm_parts, 2 * channels(), operand % kOperands, block);
  for (int c = 0; c < channels(); c++) {
    const float middle = mean[operand * channels() + c];
    Vector bias{}, scale{};
    for (int i = 0; i < cell.layout.pixels; i++) {
      bias += g[c][i];
      scale += g[c][i] * (y[c][i] - middle);
    }
    sums[2 * c] = sum_lanes(bias, to.valid);
    sums[2 * c + 1] = sum_lanes(scale, to.valid);
  }
}

// Turns the gradient of what readers see into that of the 1x1 convolution, in place.
void Backward::undo_norm(int block, int operand, Chunk chunk) {
  const Rows y = block_of(cell, states, block).half(operand);
  const Rows g = block_of(cell, gradients, block).half(operand);
  const float number = static_cast<float>(cell.layout.pixels) * cell.shape.images;
  const float* sums = norm_sums.data() + operand % kOperands * 2 * channels();
  for (int c = 0; c < channels(); c++) {
    const float inverse = inverse_deviation(operand, c), middle = mean[operand * channels() + c];
    const float factor = cell.weights.scale[operand * channels() + c] * inverse;
    const float bias_share = sums[2 * c] / number;
    const float scale_share = sums[2 * c + 1] * inverse * inverse / number;
    for (int i = chunk.first; i < chunk.first + chunk.pixels; i++)
      g[c][i] = (g[c][i] - bias_share - (y[c][i] - middle) * scale_share) * factor;
  }
}

// Through batch norm and the 1x1 convolution: the weights' gradient, and dz.
Rows Backward::project(int block, int operand) {
  const Block from = block_of(cell, states, block), to = block_of(cell, gradients, block);
  const int depth = cell.layout.width(cell.state(operand)), stride = cell.layout.plane;
  const Rows z = apply_spatial(from, affine, operand, reserve_operand(scratch().z, cell));
  const Rows dz{reserve_operand(scratch().dz, cell), stride};
  float* weights_part = part(pointwise_parts, pointwise_size(), operand % kOperands, block);
  clear(weights_part, pointwise_size());
  for (int first = 0; first < cell.layout.pixels; first += kChunk) {
    const int pixels = least(kChunk, cell.layout.pixels - first);
    undo_norm(block, operand, {0, 0, first, pixels});
    const Rows dy = to.half(operand).from(0, first), own = z.from(0, first);
    add_outer(channels(), depth, pixels, to.valid, dy, own, weights_part, 2 * channels());
    product<false>(depth, channels(), pixels, cell.pointwise(operand).transposed(), dy,
                   dz.from(0, first));
  }
  return dz;
}

// From an operand's gradient to its weights' and to that of the state it reads.
void Backward::operand(int block, int operand, bool add) {
  if (cell.full(operand)) return full_operand(block, operand, add);
  const Block from = block_of(cell, states, block), to = block_of(cell, gradients, block);
  const Rows dz = cell.projected(operand) ? project(block, operand) : to.half(operand);
  const int row = cell.state(operand);
  float* kernel_part = part(kernel_parts, cell.slot_size(), operand % kOperands, block);
  clear(kernel_part, cell.slot_size());
  for (int c = 0; c < cell.layout.width(row); c++) {
    const Channel x = normalized(from, affine, row, c);
    const float* kernel = cell.slot(operand) + int64_t{c} * kSlotSize;
    float* dk = kernel_part + c * kSlotSize;
    Vector* out = to.channel(row, c);
    const auto differentiate = [&](auto store) {
      spatial_gradients(cell.operation(operand), scratch().planes, cell.image, x, kernel, dz[c],
                        to.valid, store, dk);
    };
    if (add) {
      differentiate([=](int i, Vector gradient) { out[i] += gradient; });
    } else {
      differentiate([=](int i, Vector gradient) { out[i] = gradient; });
    }
  }
}

// The same through batch norm and a full convolution.
void Backward::full_operand(int block, int operand, bool add) {
  const Block from = block_of(cell, states, block), to = block_of(cell, gradients, block);
  const int row = cell.state(operand), pixels = cell.layout.pixels;
  const Rows dz{reserve_operand(scratch().dz, cell), cell.layout.plane};
  float* kernel_part = part(kernel_parts, cell.slot_size(), operand % kOperands, block);
  clear(kernel_part, cell.slot_size());
  undo_norm(block, operand, {0, 0, 0, pixels});
  const auto x = [&](int c) { return normalized(from, affine, row, c); };
  full_gradients(scratch().full, cell.full_kernel(operand), cell.image, x, to.half(operand),
                 to.valid, dz, kernel_part);
  for (int c = 0; c < cell.layout.width(row); c++) {
    Vector* out = to.channel(row, c);
    for (int i = 0; i < pixels; i++) {
      const Vector gradient = x(c)[i] > 0.0f ? dz[c][i] : Vector{};
      out[i] = add ? out[i] + gradient : gradient;
    }
  }
}

// Sums of batch norm over blocks, and with them the gradients of scale and bias.
void finish_norm(Backward& pass, int operand, const Gradients& out) {
  const int channels = pass.channels(), o = operand % kOperands;
  float* sums = pass.norm_sums.data() + o * 2 * channels;
  clear(sums, 2 * channels);
  pass.add_parts(pass.norm_parts, 2 * channels, o, sums);
  for (int c = 0; c < channels; c++) {
    out.bias[operand * channels + c] = sums[2 * c];
    out.scale[operand * channels + c] = sums[2 * c + 1] * pass.inverse_deviation(operand, c);
  }
}

// A node's readers and batch norms.
void node_outputs(Backward& pass, Threads threads, int node, const Gradients& out) {
  const Cell& cell = pass.cell;
  const bool unused = cell.genome.unused[node], classified = cell.shape.kind == kClassifier;
  for_each(threads, pass.blocks(), [&](int i) {
    const int block = spread(i, pass.blocks());
    if (unused && classified) pass.reader_means(block, node);
    if (unused && !classified) pass.reader(block, node);
    if (unused && cell.shape.relu) pass.undo_relu(block, node);
    for (int o = 0; o < kOperands; o++)
      if (cell.projected(cell.operand(node, o))) pass.norm(block, cell.operand(node, o));
  });
  if (unused && !classified)
    pass.add_parts(pass.reader_parts, pass.reader_size(), 0,
                   out.readers + node * pass.reader_size());
  for (int o = 0; o < kOperands; o++)
    if (cell.projected(cell.operand(node, o))) finish_norm(pass, cell.operand(node, o), out);
}

// A node's operands: their weights' gradients, and those of the states they read.
void node_operands(Backward& pass, Threads threads, int node, const Gradients& out) {
  const Cell& cell = pass.cell;
  const int first = cell.operand(node, 0), second = cell.operand(node, 1);
  const bool add_first = pass.written[cell.state(first)];
  pass.written[cell.state(first)] = true;
  const bool add_second = pass.written[cell.state(second)];
  pass.written[cell.state(second)] = true;
  for_each(threads, pass.blocks(), [&](int block) {
    pass.operand(block, first, add_first);
    pass.operand(block, second, add_second);
  });
  for (int o = 0; o < kOperands; o++) {
    const int operand = cell.operand(node, o);
    if (cell.projected(operand) && !cell.full(operand))
      pass.add_parts(pass.pointwise_parts, pass.pointwise_size(), o,
                     out.pointwise + operand * pass.pointwise_size());
    if (cell.convolves(operand))
      pass.add_parts(pass.kernel_parts, cell.slot_size(), o,
                     out.kernels + operand * cell.slot_size());
  }
}

void backward(const Shape& shape, const Genome& genome, const Weights& weights, Threads threads,
              const float* states, const float* mean, const float* variance,
              const float* out_gradient, float* x_gradient, const Gradients& out,
              float* gradients) {
  const Cell cell(shape, genome, weights);
  Affine affine(cell);
  affine.set_all(cell, mean, variance);
  Backward pass{cell, affine, const_cast<float*>(states), gradients, mean, variance, out_gradient};
  pass.reserve();
  const int64_t operands = int64_t{shape.slots} * kOperands;
  clear(out.kernels, operands * cell.slot_size());
  clear(out.pointwise, operands * pass.pointwise_size());
  clear(out.scale, operands * shape.channels);
  clear(out.bias, operands * shape.channels);
  clear(out.readers, shape.slots * pass.reader_size());

  for (int node = genome.nodes - 1; node >= 0; node--) {
    if (genome.unused[node]) pass.written[node + 1] = true;
    if (!pass.written[node + 1]) continue;  // nobody reads it
    node_outputs(pass, threads, node, out);
    node_operands(pass, threads, node, out);
  }
  for_each(threads, cell.layout.blocks, [&](int i) {
    const int block = spread(i, cell.layout.blocks);
    store_input_gradient(block_of(cell, gradients, block), block, pass.written[0], x_gradient);
  });
}

int64_t states_size(const Shape& shape) {
  const Layout layout(shape);
  return layout.blocks * layout.block_size() * kLanes;
}

}  // namespace

#define JAXEVO_TEXT(x) #x
#define JAXEVO_NAME(x) JAXEVO_TEXT(x)
extern const Kernels kKernels;
const Kernels kKernels{JAXEVO_NAME(JAXEVO_BUILD), kLanes, states_size, forward, backward, predict};

}  // namespace jaxevo::JAXEVO_BUILD
