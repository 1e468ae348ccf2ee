// Vectors of LANES floats: the same pixel of LANES images, computed side by side.
//
// GCC's and Clang's vector extensions stand for the processor's instructions. Everything that depends on
// the instruction set lies in a namespace of its own, JAXEVO_BUILD, and uses no template of the standard
// library: the linker keeps one copy of a template's instance, which might be one that this processor
// cannot run.

#pragma once

#include <cstddef>
#include <cstdlib>

#ifndef JAXEVO_BUILD
#error "compile with -DJAXEVO_BUILD=<namespace of this instruction set> -DJAXEVO_LANES=<floats a vector>"
#endif

namespace jaxevo::JAXEVO_BUILD {

constexpr int kLanes = JAXEVO_LANES;
typedef float Vector __attribute__((vector_size(4 * kLanes), aligned(4)));
#ifdef __AVX512F__
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

inline Vector splat(float value) { return Vector{} + value; }

// Comparisons with NaN are false, so a NaN stays, as in XLA.
inline Vector relu(Vector x) { return x < 0.0f ? Vector{} : x; }

// NaN if either is.
inline Vector maximum(Vector a, Vector b) {
  const Vector larger = a > b ? a : b;
  return a != a ? a : larger;
}

// The sum of the first `valid` lanes; the others belong to no image, and may hold anything.
inline float sum_lanes(Vector v, int valid) {
  float parts[kLanes];
  for (int lane = 0; lane < kLanes; lane++) parts[lane] = lane < valid ? v[lane] : 0.0f;
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) parts[lane] += parts[lane + half];
  return parts[0];
}

inline int least(int a, int b) { return a < b ? a : b; }

// Memory that grows when it must, and keeps its content only until then.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(ptrdiff_t size) { reserve(size); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  T* reserve(ptrdiff_t size) {
    if (size > size_) {
      std::free(data_);
      const size_t bytes = (size * sizeof(T) + 63) / 64 * 64;
      data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
      if (data_ == nullptr) std::abort();
      size_ = size;
    }
    return data_;
  }
  T& operator[](ptrdiff_t i) { return data_[i]; }
  const T& operator[](ptrdiff_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  ptrdiff_t size_ = 0;
};

}  // namespace jaxevo::JAXEVO_BUILD
