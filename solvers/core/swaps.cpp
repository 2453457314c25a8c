#include "swaps.hpp"

#include <random>
#include <utility>

#include "first_fit.hpp"

namespace arena {

namespace {

// Positions in the order of a random block at the peak and of a random one that lives with it and comes before it;
// equal if there is none.
std::pair<std::size_t, std::size_t> pick(const Task& task, const std::vector<int>& order,
                                         const std::vector<Int>& bases, Int peak, std::mt19937_64& random) {
    std::vector<std::size_t> highest, earlier;
    for (std::size_t p = 0; p < order.size(); ++p)
        if (bases[order[p]] * task.unit + task.blocks[order[p]].top == peak) highest.push_back(p);
    const std::size_t late = highest[random() % highest.size()];
    const Block& b = task.blocks[order[late]];
    for (std::size_t p = 0; p < late; ++p) {
        const Block& a = task.blocks[order[p]];
        if (a.pin < 0 && a.start < b.end && b.start < a.end) earlier.push_back(p);
    }
    if (b.pin >= 0 || earlier.empty()) return {late, late};
    return {earlier[random() % earlier.size()], late};
}

}  // namespace

Outcome swap_at_peak(const Task& task, std::vector<int> order, Int target, int rounds, std::uint64_t seed,
                     Time deadline, const Control& control) {
    std::mt19937_64 random(seed);
    Outcome best{Verdict::placed, first_fit(task, order, control, deadline), 0, 0};
    if (best.bases.empty()) return {Verdict::stopped, {}, 0, 0};
    Int peak = task.peak(best.bases);
    for (; best.nodes < rounds && peak > target; ++best.nodes) {
        const auto [early, late] = pick(task, order, best.bases, peak, random);
        if (early == late) break;
        std::swap(order[early], order[late]);
        std::vector<Int> bases = first_fit(task, order, control, deadline);
        if (bases.empty() || control.over(deadline)) break;
        const Int there = task.peak(bases);
        if (there <= peak) {
            peak = there;
            best.bases = std::move(bases);
        } else {
            std::swap(order[early], order[late]);
        }
    }
    return best;
}

}  // namespace arena
