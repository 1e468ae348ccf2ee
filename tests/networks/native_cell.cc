// Runs every build of the native cell that this processor can run on random cells of random shapes,
// and compares: builds with one another, any number of threads with one thread (the same bits), and
// predictions with the training's moments with the training's outputs. Every array has exactly its
// size and begins as NaN, so that what is read before it is written shows; with sanitizers also
// what lies outside.
//
//     native_cell <number of cells> <seed>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cell.h"
#include "check.h"
#include "team.h"

// Vectors as wide as AVX-512's, for processors that lack it.
namespace jaxevo::wide {
extern const Kernels kKernels;
}

using namespace jaxevo;
using Floats = std::vector<float>;

namespace {

std::mt19937 random_numbers;

std::vector<const Kernels*> builds() {
  std::vector<const Kernels*> found{&wide::kKernels};
  for (const Kernels* const* each = all_kernels(); *each != nullptr; each++) found.push_back(*each);
  return found;
}

int integer(int from, int to) {
  return std::uniform_int_distribution<int>(from, to)(random_numbers);
}

Floats normal(size_t size, float mean, float deviation) {
  std::normal_distribution<float> draw(mean, deviation);
  Floats values(size);
  for (float& value : values) value = draw(random_numbers);
  return values;
}

Floats unwritten(size_t size) { return Floats(size, NAN); }

struct RandomCell {
  Shape shape;
  int nodes;
  std::vector<int32_t> states, operations;
  std::unique_ptr<bool[]> unused;
  Floats x, out_gradient, kernels, pointwise, scale, bias, readers;

  RandomCell() {
    shape = {static_cast<Kind>(integer(0, kNumKinds - 1)),
             integer(1, 6),
             integer(1, 9),
             integer(1, 13),
             integer(1, 13),
             integer(1, 17),
             integer(1, 40),
             integer(0, 1) == 1,
             integer(0, 1) == 1};
    if (shape.kind == kReduction) shape.height++, shape.width++;
    const size_t operands = shape.slots * kOperands, channels = shape.channels;
    nodes = integer(0, shape.slots);
    for (size_t i = 0; i < operands; i++) {
      states.push_back(integer(0, i / kOperands));
      operations.push_back(integer(0, kNumOperations - 1));
    }
    unused = std::make_unique<bool[]>(shape.slots);
    for (int node = 0; node < shape.slots; node++) {
      const auto end = states.begin() + nodes * kOperands;
      unused[node] = std::find(states.begin(), end, node + 1) == end;
    }
    x = normal(channels * shape.height * shape.width * shape.images, 0.0f, 1.0f);
    out_gradient = normal(out_size(), 0.0f, 1.0f);
    const size_t planes = 2 * channels * (shape.full ? channels : 1);
    kernels = normal(operands * planes * kSlotSize, 0.0f, shape.full ? 0.1f : 0.3f);
    pointwise = normal(operands * channels * 2 * channels, 0.0f, 0.5f);
    scale = normal(operands * channels, 1.0f, 0.1f);
    bias = normal(operands * channels, 0.0f, 0.1f);
    readers = normal(size_t(shape.slots) * shape.reader_channels * 2 * channels, 0.0f, 0.5f);
  }

  size_t out_size() const {
    const size_t images = shape.images;
    if (shape.kind == kClassifier) return images * shape.slots * 2 * shape.channels;
    const int divisor = shape.kind == kReduction ? 2 : 1;
    return images * shape.reader_channels * (shape.height / divisor) * (shape.width / divisor);
  }
  Genome genome() const { return {nodes, states.data(), operations.data(), unused.get()}; }
  Weights weights() const {
    return {kernels.data(), pointwise.data(), scale.data(), bias.data(), readers.data()};
  }
};

// Everything that the three functions give, one after another.
std::vector<Floats> compute(const Kernels& build, const RandomCell& cell, int threads) {
  const Shape& shape = cell.shape;
  Floats out = unwritten(cell.out_size()), predicted = out, mean = unwritten(cell.bias.size());
  Floats variance = mean, states = unwritten(build.states_size(shape)), gradients = states;
  Floats dx = unwritten(cell.x.size()), kernels = unwritten(cell.kernels.size());
  Floats pointwise = unwritten(cell.pointwise.size()), readers = unwritten(cell.readers.size());
  Floats scale = unwritten(cell.scale.size()), bias = scale;
  Team team(threads);
  build.forward(shape, cell.genome(), cell.weights(), team.threads(), cell.x.data(), out.data(),
                  mean.data(), variance.data(), states.data());
  build.predict(shape, cell.genome(), cell.weights(), team.threads(), mean.data(),
                  variance.data(), cell.x.data(), predicted.data());
  const Gradients weights{kernels.data(), pointwise.data(), scale.data(), bias.data(),
                          readers.data()};
  build.backward(shape, cell.genome(), cell.weights(), team.threads(), states.data(), mean.data(),
                   variance.data(), cell.out_gradient.data(), dx.data(), weights, gradients.data());
  return {out, predicted, mean, variance, dx, kernels, pointwise, scale, bias, readers};
}

void fail(const RandomCell& cell, const std::string& what) {
  const Shape& s = cell.shape;
  std::printf("kind %d, B %d of %d, D %d, E %d, %d x %d, N %d, %s%s: %s\n", s.kind, cell.nodes,
              s.slots, s.channels, s.reader_channels, s.height, s.width, s.images,
              s.full ? "full" : "separable", s.relu ? ", relu" : "", what.c_str());
  std::exit(1);
}

// Compares on the scale of the largest number of each array; gradients through batch norm of few
// numbers are differences of much larger ones, so theirs is that of all gradients.
bool close(const std::vector<Floats>& a, const std::vector<Floats>& b) {
  float largest_gradient = 1.0f;
  for (size_t i = 4; i < a.size(); i++)
    for (float value : a[i]) largest_gradient = std::max(largest_gradient, std::fabs(value));
  for (size_t i = 0; i < a.size(); i++) {
    float largest = i < 4 ? 1.0f : largest_gradient;
    for (float value : a[i]) largest = std::max(largest, std::fabs(value));
    for (size_t j = 0; j < a[i].size(); j++)
      if (!(std::fabs(a[i][j] - b[i][j]) <= 2e-3f * largest)) return false;
  }
  return true;
}

bool same_bits(const std::vector<Floats>& a, const std::vector<Floats>& b) {
  for (size_t i = 0; i < a.size(); i++)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
  return true;
}

void check(const RandomCell& cell) {
  std::vector<Floats> first;
  for (const Kernels* each : builds()) {
    const std::vector<Floats> results = compute(*each, cell, 1);
    for (int threads : {2, 5})
      if (!same_bits(results, compute(*each, cell, threads))) fail(cell, "threads change bits");
    std::vector<Floats> outputs{results[0]}, predictions{results[1]};
    if (!close(outputs, predictions)) fail(cell, std::string(each->name) + " predicts otherwise");
    if (first.empty()) first = results;
    if (!close(first, results)) fail(cell, std::string(each->name) + " differs from the first");
  }
}

// A genome of any integers is refused, or can be computed.
int fuzz(RandomCell& cell) {
  cell.nodes = integer(-1, cell.shape.slots + 1);
  for (int32_t& state : cell.states) state = integer(0, 9) ? state : integer(-3, 9);
  for (int32_t& operation : cell.operations) operation = integer(0, 9) ? operation : integer(-2, 8);
  for (int node = 0; node < cell.shape.slots; node++) cell.unused[node] = integer(0, 1);
  if (problem(cell.shape, cell.genome()) != nullptr) return 0;
  compute(kernels(), cell, 2);
  return 1;
}

// An exception in any thread reaches the caller.
bool failures_arrive() {
  Team team(2);
  const Threads threads = team.threads();
  try {
    const auto task = [](const void*, int i) {
      if (i == 2) throw i;
    };
    threads.run(threads.team, 4, task, nullptr);
  } catch (const TaskFailed&) {
    return true;
  }
  return false;
}

}  // namespace

int main(int, char** arguments) {
  const int cells = std::atoi(arguments[1]);
  random_numbers.seed(std::atoi(arguments[2]));
  if (!failures_arrive()) return 1;
  int computed = 0;
  for (int i = 0; i < cells; i++) {
    RandomCell cell;
    check(cell);
    computed += fuzz(cell);
  }
  std::printf("%d cells; of as many fuzzed genomes %d could be computed; builds:", cells, computed);
  for (const Kernels* each : builds()) std::printf(" %s", each->name);
  std::printf("\n");
}
