// A cell of the universal network as C++ functions, without XLA: what `handlers.cc` calls and tests
// can call as well. `cell.cc` implements it once for each instruction set; `select.cc` picks one.
//
// Letters, as in `jaxevo.networks.universal_cell`: N images, H and W pixels, B slots for nodes, D
// channels of a cell, E channels of what reads the cell. All arrays are float32 and contiguous, the
// last axis first in memory.

#pragma once

#include <cstdint>

namespace jaxevo {

constexpr int kOperands = 2;  // of a node
constexpr int kMaxKernel = 7;
constexpr int kSlotSize = kMaxKernel * kMaxKernel;  // taps that a slot holds for a channel
constexpr float kEpsilon = 1e-5f;                   // of batch norm

enum Kind { kNormal, kReduction, kClassifier, kNumKinds };  // who reads the cell, and how

// In the order of `jaxevo.search_space.genome.OPS`, by whose names the library is checked when it is
// loaded: a genome says its operations by their numbers.
enum Operation { kIdentity, kConv3, kConv5, kConv7, kMaxPool, kAveragePool, kNumOperations };
constexpr const char* kOperationNames =
    "identity conv_3x3 conv_5x5 conv_7x7 max_pool_3x3 avg_pool_3x3";

// Of the calls, which Python compares: to be raised when what they take or give changes.
constexpr int kInterface = 2;

struct Shape {
  Kind kind;
  int slots;            // B
  int channels;         // D
  int reader_channels;  // E
  int height, width;    // H, W
  int images;           // N
  bool full;            // whether convolutions are full, or depthwise and then 1x1
  bool relu;            // whether what leaves the cell is rectified
};

// The genome's cell as integers (`EncodedCell`). Row 0 of the states is the input, row k + 1 is
// node k.
struct Genome {
  int nodes;
  const int32_t* states;      // [B, 2], row that an operand reads
  const int32_t* operations;  // [B, 2]
  const bool* unused;         // [B], whether a node is part of the cell's output
};

// Parameters (`Slots`, and the readers' weights), or their gradients.
template <class Float>
struct Parameters {
  Float* kernels;    // [B, 2, 2D, 7, 7], of full convolutions [B, 2, D, 2D, 7, 7]
  Float* pointwise;  // [B, 2, D, 2D]
  Float* scale;      // [B, 2, D]
  Float* bias;       // [B, 2, D]
  Float* readers;    // [B, E, 2D]
};
using Weights = Parameters<const float>;
using Gradients = Parameters<float>;

// Runs task(context, 0), ..., task(context, tasks - 1) in any order, on any threads, and returns
// when all have ended.
struct Threads {
  void* team;
  void (*run)(void* team, int tasks, void (*task)(const void* context, int index),
              const void* context);
};

// The functions of one instruction set. `out` is [E, H, W, N], [E, H / 2, W / 2, N] or, for the
// classifier, [B, 2D, N]. `states` and `gradients` hold `states_size` floats: every state of the
// cell before batch norm, in the layout that `layout.h` draws.
struct Kernels {
  const char* name;
  int lanes;  // images that are computed side by side
  int64_t (*states_size)(const Shape&);
  void (*forward)(const Shape&, const Genome&, const Weights&, Threads, const float* x, float* out,
                  float* mean, float* variance, float* states);
  void (*backward)(const Shape&, const Genome&, const Weights&, Threads, const float* states,
                   const float* mean, const float* variance, const float* out_gradient,
                   float* x_gradient, const Gradients&, float* gradients);
  void (*predict)(const Shape&, const Genome&, const Weights&, Threads, const float* mean,
                  const float* variance, const float* x, float* out);
};

// All builds that this processor runs, best first, ended by null.
const Kernels* const* all_kernels();

// The best of them, or the one chosen last. Choosing fails for a name that is not among them.
const Kernels& kernels();
bool choose(const char* name);

}  // namespace jaxevo
