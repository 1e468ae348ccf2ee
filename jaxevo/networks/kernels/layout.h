// Where the states of a cell lie in memory.
//
// XLA's arrays are [C, H, W, N]: for one pixel the N images follow one another. The states of a
// cell are divided among blocks of LANES images, which have nothing to do with one another but for
// batch norm:
//
//     block 0: images 0 .. LANES - 1             block 1: images LANES .. 2 LANES - 1         ...
//     +--------+----------------+----------------+-- -- --+--------+----------------+-- -- --
//     | input  | node 0         | node 1         |        | input  | node 0         |
//     | D      | 2D channels    | 2D channels    | B - 1  | D      |                |
//     +--------+----------------+----------------+-- -- --+--------+----------------+-- -- --
//              |                 `----------------.
//              +------------------+------- -- -----+
//     node 0:  | channel 0        | channel 1      |   channels 0 .. D - 1 come from operand 0, the
//              +------------------+------- -- -----+   others from operand 1
//              |                   `-----------------.
//              +-----------+-----------+------ -- ---+
//     channel: | pixel 0,0 | pixel 0,1 |             |   H * W vectors of LANES floats, and one
//     more
//              +-----------+-----------+------ -- ---+   if that is even
//
// An odd number of vectors a channel lets the same pixel of all channels, which the 1x1
// convolutions read together, lie in different sets of the processor's cache.
//
// In the last block the lanes after image N - 1 belong to no image. They are computed like the
// others: no lane ever reaches another but in sums over images, and `sum_lanes` leaves them out.
//
// States are stored as they are before batch norm. Who reads a state applies its factor and shift
// (see `Affine` in `cell.cc`), which are known only once every block has computed the state.

#pragma once

#include "cell.h"
#include "vectors.h"

namespace jaxevo::JAXEVO_BUILD {

struct Layout {
  explicit Layout(const Shape& shape)
      : slots(shape.slots),
        channels(shape.channels),
        images(shape.images),
        pixels(shape.height * shape.width),
        plane(pixels | 1),
        blocks((shape.images + kLanes - 1) / kLanes) {}

  // Images in a block.
  int valid(int block) const { return least(kLanes, images - block * kLanes); }

  // Channels of a state.
  int width(int row) const { return row > 0 ? 2 * channels : channels; }

  // Vectors from the start of a block to a state, and of a whole block.
  ptrdiff_t offset(int row) const {
    return static_cast<ptrdiff_t>(row > 0 ? 2 * row - 1 : 0) * channels * plane;
  }
  ptrdiff_t block_size() const { return offset(slots + 1); }

  int slots, channels, images;
  int pixels;  // of an image
  int plane;   // vectors from one channel to the next
  int blocks;
};

}  // namespace jaxevo::JAXEVO_BUILD
