// A task as flat arrays: blocks of rectangles, the sections they live in, and who is under whom.
#pragma once

#include <cstdint>
#include <vector>

namespace arena {

using Int = std::int64_t;

// The smallest multiple of `step` that is at least `value`; both non-negative.
inline Int round_up(Int value, Int step) { return (value + step - 1) / step * step; }

// Addresses [low, high) relative to the block's base, needed in steps [start, end).
struct Rect {
    Int low, high;
    int start, end;
};

// The hull of a block's rectangles in the sections [start, end), which do not change there.
struct Hull {
    int start, end;
    Int bottom, top;
};

// What a block is; units but for `top`, bytes. `pin` is its base, or -1.
struct Block {
    std::vector<Rect> rects;
    Int step, pin, top;
    int start, end;  // steps
};

// A block that lives in a section, and the bottom of its hull there.
struct Live {
    int block;
    Int bottom;
};

struct Task {
    std::vector<Block> blocks;
    Int unit;  // bytes
    int steps;

    // The largest base at which the block ends within `capacity` bytes; negative if none.
    Int highest_base(int block, Int capacity) const {
        const Block& b = blocks[block];
        return capacity < b.top ? -1 : (capacity - b.top) / unit / b.step * b.step;
    }
    Int peak(const std::vector<Int>& bases) const;
};

// Who lives with whom, for the depth-first search.
//
// A block i is *under* j if base_j >= base_i + height(i, j), the most that i's top is above j's bottom in a common
// section. If no two blocks interlock, one of two neighbours is under the other; and if anchors exist with
// height(i, j) + anchor_j - anchor_i > 0 for all neighbours, then whoever is under has the lower base + anchor, and no
// blocks are under each other in a circle. Then `exact`: the search misses no plan. Else it may.
struct Neighbours {
    bool exact = true;
    int sections = 0;
    std::vector<std::vector<Hull>> hulls;  // by block
    std::vector<std::size_t> first;        // by block: where its neighbours begin; one more at the end
    std::vector<int> other;
    std::vector<Int> height;  // of the block under `other`
    std::vector<Int> under;   // of `other` under the block
    std::vector<Int> anchor;
    std::vector<int> twin;      // by block: the first block that is just like it
    std::vector<int> begin, end;  // sections, by block
    std::vector<std::size_t> live_first;  // by section: where its blocks begin; one more at the end
    std::vector<Live> live;

    explicit Neighbours(const Task& task);

   private:
    void cut_sections(const Task& task);
    void list(const Task& task);
    void set_anchors();
    void list_live();
    void find_twins(const Task& task);
};

// How many ordered pairs of blocks overlap in time, taking a block to live from its first to its last step.
Int overlapping_pairs(const Task& task);

}  // namespace arena
