// Chooses the build of `cell.cc` for this processor. JAXEVO_X86 says that the builds for x86 are
// there.

#include <atomic>
#include <cstring>

#include "cell.h"

namespace jaxevo {

namespace generic {
extern const Kernels kKernels;
}
#ifdef JAXEVO_X86
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
#endif

namespace {

// What this processor runs, best first. The features are those of the flags in `build_kernels.py`.
struct Runnable {
  Runnable() {
    int number = 0;
#ifdef JAXEVO_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw");
    if (avx512) list[number++] = &avx512::kKernels;
    if (avx2) list[number++] = &avx2::kKernels;
#endif
    list[number] = &generic::kKernels;
  }
  const Kernels* list[4] = {};
};

const Runnable& runnable() {
  static const Runnable found;
  return found;
}

std::atomic<const Kernels*> chosen{nullptr};

}  // namespace

const Kernels* const* all_kernels() { return runnable().list; }

const Kernels& kernels() {
  const Kernels* choice = chosen.load(std::memory_order_relaxed);
  return choice != nullptr ? *choice : *runnable().list[0];
}

bool choose(const char* name) {
  for (const Kernels* const* each = all_kernels(); *each != nullptr; each++) {
    if (std::strcmp((*each)->name, name) != 0) continue;
    chosen.store(*each, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace jaxevo
