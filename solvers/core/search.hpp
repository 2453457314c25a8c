// Depth-first search over canonical placements: is there a plan within a capacity?
#pragma once

#include <vector>

#include "control.hpp"
#include "instance.hpp"

namespace arena {

enum class Verdict { placed, infeasible, stopped };

struct Outcome {
    Verdict verdict;
    std::vector<Int> bases;  // if placed
    Int nodes;               // blocks taken, on all branches together
    Int work;                // steps of inner loops: time, the same on every machine
};

struct Limits {
    Int nodes, work;
    Time deadline;
};

// Search for a plan of at most `capacity` bytes; `order` ranks blocks that can go equally low, first to last.
//
// Of the plans with the smallest sum of bases, each block rests on the floor or on one that is under it. So at any
// time a block that nothing to come is under lies at its lowest base above those taken. Hence two branches: *take* a
// block there, with all its neighbours to come above it; or *put it off* until a neighbour has been taken under it.
// (MiniMalloc, Moffitt, ASPLOS 2023, takes all blocks by ascending offset instead, which makes each choice depend on
// choices that are far away in time; here only neighbours matter. Setting a variable to its least value or putting it
// off is SetTimes, Le Pape et al. 1994.)
//
// Cut off are
// - sections in which what is to come, none of it lower than its least base, does not fit;
// - blocks put off that nothing to come can be under within the capacity, or that nothing needs to be under because all
//   that is to come stays clear of their lowest place;
// - all twins of a block but the first;
// - parts of time that nothing to come connects are searched one by one; if one fails, its cause is what split it off.
// The next block is a lowest one, among its neighbours, near the section with the least room to spare.
Outcome search(const Task& task, const Neighbours& near, const std::vector<int>& order, Int capacity,
               const Limits& limits, Control& control);

}  // namespace arena
