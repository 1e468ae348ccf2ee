// What is wrong with a genome that arrived as numbers. Compiled for any processor.

#pragma once

#include "cell.h"

namespace jaxevo {

// One sentence, or null for a genome whose every index can be used.
inline const char* problem(const Shape& shape, const Genome& genome) {
  if (genome.nodes < 0 || genome.nodes > shape.slots) return "number of nodes outside of 0 to B";
  for (int i = 0; i < genome.nodes * kOperands; i++) {
    const int state = genome.states[i], operation = genome.operations[i], row = i / kOperands + 1;
    if (state < 0 || state >= row) return "an operand reads a state that is not there yet";
    if (operation < 0 || operation >= kNumOperations) return "no such operation";
  }
  return nullptr;
}

}  // namespace jaxevo
