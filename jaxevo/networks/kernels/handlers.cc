// The cell as custom calls of XLA (its foreign function interface), and the functions that Python
// calls.
//
// The genome arrives as arrays when a program runs. Every number of it that becomes an index is
// checked here, and so is every shape: a call with one out of its range fails, and nothing is read.

#include <algorithm>
#include <atomic>
#include <string>

#include "cell.h"
#include "check.h"
#include "team.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace jaxevo {
namespace {

template <size_t kRank>
using Array = ffi::Buffer<ffi::F32, kRank>;
template <size_t kRank>
using Result = ffi::Result<ffi::Buffer<ffi::F32, kRank>>;
using Number = ffi::Buffer<ffi::S32, 0>;
using Indices = ffi::Buffer<ffi::S32, 2>;
using Flags = ffi::Buffer<ffi::PRED, 1>;

std::atomic<int> thread_limit{0};  // 0: as many as XLA's pool has

// Collects the first thing that is wrong with a call.
class Checks {
 public:
  void require(bool holds, const char* sentence) {
    if (!holds && problem_.empty()) problem_ = sentence;
  }
  template <class Buffer>
  void shape(const Buffer& buffer, std::initializer_list<int64_t> expected, const char* problem) {
    const auto dimensions = buffer.dimensions();
    require(std::equal(dimensions.begin(), dimensions.end(), expected.begin(), expected.end()),
            problem);
  }
  bool ok() const { return problem_.empty(); }
  ffi::Error error() const {
    return ok() ? ffi::Error::Success() : ffi::Error::InvalidArgument("native cell: " + problem_);
  }

 private:
  std::string problem_;
};

// What every call has: the weights and the genome.
struct Inputs {
  Array<5> kernels;  // of full convolutions [B, 2, D 2D, 7, 7]
  Array<4> pointwise;
  Array<3> scale, bias, readers;
  Number nodes;
  Indices states, operations;
  Flags unused;

  Weights weights() const {
    return {kernels.typed_data(), pointwise.typed_data(), scale.typed_data(), bias.typed_data(),
            readers.typed_data()};
  }
  Genome genome() const {
    return {nodes.typed_data()[0], states.typed_data(), operations.typed_data(),
            unused.typed_data()};
  }
  // The cell's shape, with the first four axes of its input [D, H, W, N].
  Shape shape(int32_t kind, bool full, bool relu, const Array<4>& x) const {
    const auto of = x.dimensions();
    const auto size = [](int64_t value) { return static_cast<int>(value); };
    return {static_cast<Kind>(kind),
            size(readers.dimensions()[0]),
            size(of[0]),
            size(readers.dimensions()[1]),
            size(of[1]),
            size(of[2]),
            size(of[3]),
            full,
            relu};
  }
};

void check_shapes(Checks& checks, const Shape& shape, const Inputs& in) {
  const int64_t slots = shape.slots, channels = shape.channels;
  checks.require(shape.kind >= 0 && shape.kind < kNumKinds, "no such kind of cell");
  checks.require(channels > 0 && shape.height > 0 && shape.width > 0 && shape.images > 0,
                 "an empty input");
  checks.shape(in.readers, {slots, shape.reader_channels, 2 * channels},
               "readers are not [B, E, 2D]");
  const int64_t planes = 2 * channels * (shape.full ? channels : 1);
  checks.shape(in.kernels, {slots, kOperands, planes, kMaxKernel, kMaxKernel},
               "kernels are not [B, 2, 2D, 7, 7], or of full convolutions [B, 2, D 2D, 7, 7]");
  checks.shape(in.pointwise, {slots, kOperands, channels, 2 * channels},
               "weights are not [B, 2, D, 2D]");
  checks.shape(in.scale, {slots, kOperands, channels}, "scales are not [B, 2, D]");
  checks.shape(in.bias, {slots, kOperands, channels}, "biases are not [B, 2, D]");
  checks.shape(in.states, {slots, kOperands}, "states are not [B, 2]");
  checks.shape(in.operations, {slots, kOperands}, "operations are not [B, 2]");
  checks.shape(in.unused, {slots}, "unused is not [B]");
}

void check_inputs(Checks& checks, const Shape& shape, const Inputs& in) {
  check_shapes(checks, shape, in);
  if (!checks.ok()) return;
  const char* wrong = problem(shape, in.genome());
  checks.require(wrong == nullptr, wrong);
}

template <class Buffer>
void check_moments(Checks& checks, const Shape& shape, const Buffer& mean, const Buffer& variance) {
  checks.shape(mean, {shape.slots, kOperands, shape.channels}, "means are not [B, 2, D]");
  checks.shape(variance, {shape.slots, kOperands, shape.channels}, "variances are not [B, 2, D]");
}

void check_size(Checks& checks, int64_t size, int64_t expected, const char* problem) {
  checks.require(size == expected, problem);
}

// Numbers of the output, or of its gradient.
int64_t output_size(const Shape& shape) {
  const int64_t images = shape.images, readers = shape.reader_channels;
  if (shape.kind == kClassifier) return int64_t{2} * shape.slots * shape.channels * images;
  const int divisor = shape.kind == kReduction ? 2 : 1;
  return readers * (shape.height / divisor) * (shape.width / divisor) * images;
}

// As many threads as have something to do.
Team make_team(ffi::ThreadPool pool, const Shape& shape, int lanes) {
  const int limit = thread_limit.load(std::memory_order_relaxed);
  const int blocks = (shape.images + lanes - 1) / lanes;
  int threads = std::min(static_cast<int>(pool.num_threads()), kOperands * blocks);
  if (limit > 0) threads = std::min(threads, limit);
  return Team(threads);
}

// Computes; kernels throw only when there is no memory.
template <class Compute>
ffi::Error run(Compute compute) {
  try {
    compute();
    return ffi::Error::Success();
  } catch (...) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "native cell: out of memory");
  }
}

ffi::Error Forward(ffi::ThreadPool pool, int32_t kind, bool full, bool relu, Array<4> x,
                   Array<5> kernels, Array<4> pointwise, Array<3> scale, Array<3> bias,
                   Array<3> readers,
                   Number nodes, Indices states, Indices operations, Flags unused,
                   ffi::Result<ffi::AnyBuffer> out, Result<3> mean, Result<3> variance,
                   Result<1> kept) {
  const Inputs in{kernels, pointwise, scale, bias, readers, nodes, states, operations, unused};
  const Shape shape = in.shape(kind, full, relu, x);
  const Kernels& chosen = jaxevo::kernels();
  Checks checks;
  check_inputs(checks, shape, in);
  check_moments(checks, shape, *mean, *variance);
  check_size(checks, out->element_count(), output_size(shape), "the output has another size");
  if (checks.ok())
    check_size(checks, kept->element_count(), chosen.states_size(shape),
               "the states have another size");
  if (!checks.ok()) return checks.error();
  return run([&] {
    Team team = make_team(pool, shape, chosen.lanes);
    chosen.forward(shape, in.genome(), in.weights(), team.threads(), x.typed_data(),
                   out->typed_data<float>(), mean->typed_data(), variance->typed_data(),
                   kept->typed_data());
  });
}

ffi::Error Predict(ffi::ThreadPool pool, int32_t kind, bool full, bool relu, Array<4> x,
                   Array<5> kernels, Array<4> pointwise, Array<3> scale, Array<3> bias,
                   Array<3> readers,
                   Number nodes, Indices states, Indices operations, Flags unused, Array<3> mean,
                   Array<3> variance, ffi::Result<ffi::AnyBuffer> out) {
  const Inputs in{kernels, pointwise, scale, bias, readers, nodes, states, operations, unused};
  const Shape shape = in.shape(kind, full, relu, x);
  const Kernels& chosen = jaxevo::kernels();
  Checks checks;
  check_inputs(checks, shape, in);
  check_moments(checks, shape, mean, variance);
  check_size(checks, out->element_count(), output_size(shape), "the output has another size");
  if (!checks.ok()) return checks.error();
  return run([&] {
    Team team = make_team(pool, shape, chosen.lanes);
    chosen.predict(shape, in.genome(), in.weights(), team.threads(), mean.typed_data(),
                   variance.typed_data(), x.typed_data(), out->typed_data<float>());
  });
}

ffi::Error Backward(ffi::ThreadPool pool, int32_t kind, bool full, bool relu,
                    Array<5> kernels, Array<4> pointwise, Array<3> scale, Array<3> bias,
                    Array<3> readers, Number nodes, Indices states, Indices operations,
                    Flags unused, Array<1> kept, Array<3> mean, Array<3> variance,
                    ffi::AnyBuffer out_gradient, Result<4> x_gradient, Result<5> kernels_gradient,
                    Result<4> pointwise_gradient, Result<3> scale_gradient,
                    Result<3> bias_gradient, Result<3> readers_gradient, Result<1> gradients) {
  const Inputs in{kernels, pointwise, scale, bias, readers, nodes, states, operations, unused};
  const Shape shape = in.shape(kind, full, relu, *x_gradient);
  const Kernels& chosen = jaxevo::kernels();
  Checks checks;
  check_inputs(checks, shape, in);
  check_moments(checks, shape, mean, variance);
  check_size(checks, out_gradient.element_count(), output_size(shape),
             "the gradient has another size");
  if (checks.ok()) {
    check_size(checks, kept.element_count(), chosen.states_size(shape),
               "the states have another size");
    check_size(checks, gradients->element_count(), chosen.states_size(shape),
               "the states' gradients have another size");
  }
  check_size(checks, kernels_gradient->element_count(), kernels.element_count(),
             "a gradient has another size than its weights");
  check_size(checks, pointwise_gradient->element_count(), pointwise.element_count(),
             "a gradient has another size than its weights");
  check_size(checks, scale_gradient->element_count(), scale.element_count(),
             "a gradient has another size than its weights");
  check_size(checks, bias_gradient->element_count(), bias.element_count(),
             "a gradient has another size than its weights");
  check_size(checks, readers_gradient->element_count(), readers.element_count(),
             "a gradient has another size than its weights");
  if (!checks.ok()) return checks.error();
  const Gradients out{kernels_gradient->typed_data(), pointwise_gradient->typed_data(),
                      scale_gradient->typed_data(), bias_gradient->typed_data(),
                      readers_gradient->typed_data()};
  return run([&] {
    Team team = make_team(pool, shape, chosen.lanes);
    chosen.backward(shape, in.genome(), in.weights(), team.threads(), kept.typed_data(),
                    mean.typed_data(), variance.typed_data(), out_gradient.typed_data<float>(),
                    x_gradient->typed_data(), out, gradients->typed_data());
  });
}

// The arguments that all three have, after their own first ones.
template <class Binding>
auto with_weights_and_genome(Binding binding) {
  return std::move(binding)
      .template Arg<Array<5>>()
      .template Arg<Array<4>>()
      .template Arg<Array<3>>()
      .template Arg<Array<3>>()
      .template Arg<Array<3>>()
      .template Arg<Number>()
      .template Arg<Indices>()
      .template Arg<Indices>()
      .template Arg<Flags>();
}

auto of_cell() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Attr<int32_t>("kind")
      .Attr<bool>("full")
      .Attr<bool>("relu");
}

}  // namespace
}  // namespace jaxevo

#pragma GCC visibility push(default)

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    jaxevo_cell_forward, jaxevo::Forward,
    jaxevo::with_weights_and_genome(jaxevo::of_cell().Arg<jaxevo::Array<4>>())
        .Ret<ffi::AnyBuffer>()
        .Ret<jaxevo::Array<3>>()
        .Ret<jaxevo::Array<3>>()
        .Ret<jaxevo::Array<1>>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    jaxevo_cell_predict, jaxevo::Predict,
    jaxevo::with_weights_and_genome(jaxevo::of_cell().Arg<jaxevo::Array<4>>())
        .Arg<jaxevo::Array<3>>()
        .Arg<jaxevo::Array<3>>()
        .Ret<ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxevo_cell_backward, jaxevo::Backward,
                              jaxevo::with_weights_and_genome(jaxevo::of_cell())
                                  .Arg<jaxevo::Array<1>>()
                                  .Arg<jaxevo::Array<3>>()
                                  .Arg<jaxevo::Array<3>>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<jaxevo::Array<4>>()
                                  .Ret<jaxevo::Array<5>>()
                                  .Ret<jaxevo::Array<4>>()
                                  .Ret<jaxevo::Array<3>>()
                                  .Ret<jaxevo::Array<3>>()
                                  .Ret<jaxevo::Array<3>>()
                                  .Ret<jaxevo::Array<1>>());

extern "C" {

// The name of the build that computes, such as "avx2".
const char* jaxevo_kernels_name() { return jaxevo::kernels().name; }

// The names of the operations in the order of their numbers, between spaces.
const char* jaxevo_operations() { return jaxevo::kOperationNames; }

// The number of the calls' interface.
int jaxevo_interface() { return jaxevo::kInterface; }

// Takes the build of this name from now on; 0 if this processor does not run it.
int jaxevo_choose_kernels(const char* name) { return jaxevo::choose(name) ? 1 : 0; }

// Threads that a call takes at most; 0: as many as XLA has.
void jaxevo_limit_threads(int threads) { jaxevo::thread_limit.store(threads); }

// Floats that the states of a cell of this shape take.
int64_t jaxevo_states_size(int slots, int channels, int height, int width, int images) {
  return jaxevo::kernels().states_size(
      {jaxevo::kNormal, slots, channels, 1, height, width, images, false, false});
}

}  // extern "C"

#pragma GCC visibility pop
