#include "first_fit.hpp"

#include <algorithm>

namespace arena {

void Ranges::add(Int low, Int high) {
    auto from = std::lower_bound(ranges_.begin(), ranges_.end(), low,
                                 [](const std::pair<Int, Int>& r, Int at) { return r.second < at; });
    auto to = from;
    for (; to != ranges_.end() && to->first <= high; ++to) {
        low = std::min(low, to->first);
        high = std::max(high, to->second);
    }
    if (from == to) {
        ranges_.insert(from, {low, high});
    } else {
        *from = {low, high};
        ranges_.erase(from + 1, to);
    }
}

Int Ranges::end_of_obstacle(Int low, Int high) const {
    auto at = std::upper_bound(ranges_.begin(), ranges_.end(), low,
                               [](Int value, const std::pair<Int, Int>& r) { return value < r.second; });
    return at != ranges_.end() && at->first < high ? at->second : low;
}

Occupancy::Occupancy(int steps) : steps_(steps), across_(4 * steps), within_(4 * steps) {}

void Occupancy::add(const Block& block, Int base) {
    for (const Rect& r : block.rects) add(1, 0, steps_, r, base);
}

void Occupancy::add(int node, int low, int high, const Rect& r, Int base) {
    within_[node].add(base + r.low, base + r.high);
    if (r.start <= low && high <= r.end) {
        across_[node].add(base + r.low, base + r.high);
        return;
    }
    const int middle = (low + high) / 2;
    if (r.start < middle) add(2 * node, low, middle, r, base);
    if (middle < r.end) add(2 * node + 1, middle, high, r, base);
}

void Occupancy::collect(int node, int low, int high, const Rect& r) {
    if (within_[node].empty()) return;
    if (r.start <= low && high <= r.end) {
        met_.emplace_back(&r, &within_[node]);
        return;
    }
    if (!across_[node].empty()) met_.emplace_back(&r, &across_[node]);
    const int middle = (low + high) / 2;
    if (r.start < middle) collect(2 * node, low, middle, r);
    if (middle < r.end) collect(2 * node + 1, middle, high, r);
}

Int Occupancy::lowest(const Block& block) {
    met_.clear();
    for (const Rect& r : block.rects) collect(1, 0, steps_, r);
    Int base = 0;
    for (std::size_t clear = 0, i = 0; clear < met_.size(); ++clear, i = (i + 1) % met_.size()) {
        const auto [r, ranges] = met_[i];
        for (Int end; (end = ranges->end_of_obstacle(base + r->low, base + r->high)) > base + r->low; clear = 0)
            base = round_up(end - r->low, block.step);
    }
    return base;
}

std::vector<Int> first_fit(const Task& task, const std::vector<int>& order, const Control& control, Time deadline) {
    Occupancy taken(task.steps);
    int count = 0;
    std::vector<Int> bases(task.blocks.size());
    for (const bool pinned : {true, false})
        for (int k : order) {
            const Block& b = task.blocks[k];
            if ((b.pin >= 0) != pinned) continue;
            if (++count % 256 == 0 && control.over(deadline)) return {};
            bases[k] = pinned ? b.pin : taken.lowest(b);
            taken.add(b, bases[k]);
        }
    return bases;
}

}  // namespace arena
