// Local improvement of a first-fit order by swaps at the bottleneck.
#pragma once

#include <cstdint>

#include "search.hpp"

namespace arena {

// Swap a block that ends at the peak with one that lives with it and comes earlier in the order; keep the swap unless
// first-fit then ends higher. The idea is that of Vela's hill climbing allocator (Arm Ethos-U compiler).
//
// Ends after `rounds` swaps, at `target` bytes, or when it is stopped: then with the best so far, if there is one.
Outcome swap_at_peak(const Task& task, std::vector<int> order, Int target, int rounds, std::uint64_t seed,
                     Time deadline, const Control& control);

}  // namespace arena
