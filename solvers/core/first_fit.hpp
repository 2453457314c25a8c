// First-fit: blocks in a given order, each at the lowest base that is free.
#pragma once

#include <utility>
#include <vector>

#include "control.hpp"
#include "instance.hpp"

namespace arena {

// Disjoint ranges of addresses, sorted; those that touch are joined.
class Ranges {
   public:
    void add(Int low, Int high);
    // Where the range that meets [low, high) ends, or `low` if none does.
    Int end_of_obstacle(Int low, Int high) const;
    bool empty() const { return ranges_.empty(); }

   private:
    std::vector<std::pair<Int, Int>> ranges_;
};

// What is taken, over time: a segment tree over steps. A node knows the addresses taken throughout its steps by
// rectangles that cover them all (`across`), and those taken in any of its steps (`within`). A query unites
// O(log steps) of these sets, and packed blocks leave few ranges in each, so that first-fit is near-linear.
class Occupancy {
   public:
    explicit Occupancy(int steps);
    void add(const Block& block, Int base);
    // The lowest base, a multiple of the block's step, at which no rectangle meets a taken one.
    Int lowest(const Block& block);

   private:
    void add(int node, int low, int high, const Rect& r, Int base);
    void collect(int node, int low, int high, const Rect& r);

    int steps_;
    std::vector<Ranges> across_, within_;
    std::vector<std::pair<const Rect*, const Ranges*>> met_;
};

// Bases by block; pinned blocks come first. Empty if it is stopped.
std::vector<Int> first_fit(const Task& task, const std::vector<int>& order, const Control& control, Time deadline);

}  // namespace arena
