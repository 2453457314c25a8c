#include "instance.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace arena {

Int Task::peak(const std::vector<Int>& bases) const {
    Int most = 0;
    for (std::size_t k = 0; k < blocks.size(); ++k) most = std::max(most, bases[k] * unit + blocks[k].top);
    return most;
}

Int overlapping_pairs(const Task& task) {
    std::vector<Int> started(task.steps + 1), ended(task.steps + 1);
    for (const Block& b : task.blocks) {
        ++started[b.start];
        ++ended[b.end];
    }
    Int pairs = 0, live = 0;
    for (int t = 0; t < task.steps; ++t) {
        live -= ended[t];
        pairs += started[t] * (2 * live + started[t] - 1);
        live += started[t];
    }
    return pairs;
}

Neighbours::Neighbours(const Task& task) {
    cut_sections(task);
    list(task);
    set_anchors();
    list_live();
    find_twins(task);
}

// A section is a step after which something ends before anything starts: the maximal sets of what lives together.
void Neighbours::cut_sections(const Task& task) {
    std::vector<char> ends(task.steps + 1, 0);
    for (const Block& b : task.blocks)
        for (const Rect& r : b.rects) ends[r.end] = 1;
    ends[task.steps] = 1;
    std::vector<int> section(task.steps + 1);  // how many sections lie before a step
    for (int t = 0; t < task.steps; ++t) section[t + 1] = section[t] + ends[t + 1];
    sections = section[task.steps];

    for (const Block& b : task.blocks) {
        std::vector<Hull> own;
        std::vector<int> cuts;
        for (const Rect& r : b.rects) {
            cuts.push_back(section[r.start]);
            cuts.push_back(section[r.end]);
        }
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
            Hull h{cuts[c], cuts[c + 1], std::numeric_limits<Int>::max(), 0};
            for (const Rect& r : b.rects)
                if (section[r.start] <= h.start && h.end <= section[r.end]) {
                    h.bottom = std::min(h.bottom, r.low);
                    h.top = std::max(h.top, r.high);
                }
            if (h.top == 0) continue;
            if (!own.empty() && own.back().end == h.start && own.back().bottom == h.bottom && own.back().top == h.top)
                own.back().end = h.end;
            else
                own.push_back(h);
        }
        hulls.push_back(std::move(own));
        begin.push_back(hulls.back().front().start);
        end.push_back(hulls.back().back().end);
    }
}

namespace {

// The height of `i` under `j`; false if they share no section.
bool height_under(const std::vector<Hull>& i, const std::vector<Hull>& j, Int& height) {
    bool met = false;
    std::size_t a = 0, b = 0;
    while (a < i.size() && b < j.size()) {
        if (i[a].start < j[b].end && j[b].start < i[a].end) {
            Int here = i[a].top - j[b].bottom;
            height = met ? std::max(height, here) : here;
            met = true;
        }
        i[a].end <= j[b].end ? ++a : ++b;
    }
    return met;
}

// Could one of the two stand between rectangles of the other, so that neither is under the other?
bool interlock(const Block& i, const Block& j) {
    std::vector<std::pair<Int, Int>> forbidden;  // differences base_j - base_i at which they collide, open intervals
    for (const Rect& r : i.rects)
        for (const Rect& s : j.rects)
            if (r.start < s.end && s.start < r.end) forbidden.emplace_back(r.low - s.high, r.high - s.low);
    std::sort(forbidden.begin(), forbidden.end());
    Int reached = forbidden.front().second;
    for (auto [low, high] : forbidden) {
        if (low >= reached) return true;
        reached = std::max(reached, high);
    }
    return false;
}

}  // namespace

void Neighbours::list(const Task& task) {
    const int n = static_cast<int>(task.blocks.size());
    std::vector<int> by_start(n);
    std::iota(by_start.begin(), by_start.end(), 0);
    std::stable_sort(by_start.begin(), by_start.end(), [&](int a, int b) { return begin[a] < begin[b]; });
    auto each_pair = [&](auto&& visit) {
        std::vector<int> live;
        for (int k : by_start) {
            live.erase(std::remove_if(live.begin(), live.end(), [&](int j) { return end[j] <= begin[k]; }), live.end());
            for (int j : live) {
                Int under = 0, over = 0;
                if (height_under(hulls[k], hulls[j], under) && height_under(hulls[j], hulls[k], over))
                    visit(k, j, under, over);
            }
            live.push_back(k);
        }
    };
    first.assign(n + 1, 0);
    each_pair([&](int k, int j, Int, Int) {
        ++first[k + 1], ++first[j + 1];
        const bool simple = task.blocks[k].rects.size() == 1 && task.blocks[j].rects.size() == 1;
        if (exact && !simple && interlock(task.blocks[k], task.blocks[j])) exact = false;
    });
    std::partial_sum(first.begin(), first.end(), first.begin());
    other.resize(first[n]);
    height.resize(first[n]);
    under.resize(first[n]);
    std::vector<std::size_t> at(first.begin(), first.end() - 1);
    each_pair([&](int k, int j, Int under, Int over) {
        other[at[k]] = j, this->under[at[k]] = over, height[at[k]++] = under;
        other[at[j]] = k, this->under[at[j]] = under, height[at[j]++] = over;
    });
}

// Bellman-Ford on anchor_i <= anchor_j + height(i, j) - 1; all zero where blocks are plain rectangles.
void Neighbours::set_anchors() {
    const int n = static_cast<int>(hulls.size());
    anchor.assign(n, 0);
    bool changed = true;
    for (int round = 0; changed && round <= 50; ++round) {
        changed = false;
        for (int i = 0; i < n; ++i)
            for (std::size_t e = first[i]; e < first[i + 1]; ++e)
                if (anchor[i] > anchor[other[e]] + height[e] - 1) {
                    anchor[i] = anchor[other[e]] + height[e] - 1;
                    changed = true;
                }
    }
    if (changed) {
        exact = false;
        anchor.assign(n, 0);
    }
    const Int lowest = n ? *std::min_element(anchor.begin(), anchor.end()) : 0;
    for (Int& a : anchor) a -= lowest;
}

void Neighbours::list_live() {
    live_first.assign(sections + 1, 0);
    for (const auto& own : hulls)
        for (const Hull& h : own)
            for (int s = h.start; s < h.end; ++s) ++live_first[s + 1];
    std::partial_sum(live_first.begin(), live_first.end(), live_first.begin());
    live.resize(live_first[sections]);
    std::vector<std::size_t> at(live_first.begin(), live_first.end() - 1);
    for (int k = 0; k < static_cast<int>(hulls.size()); ++k)
        for (const Hull& h : hulls[k])
            for (int s = h.start; s < h.end; ++s) live[at[s]++] = {k, h.bottom};
}

void Neighbours::find_twins(const Task& task) {
    std::map<std::vector<Int>, int> seen;
    for (int i = 0; i < static_cast<int>(hulls.size()); ++i) {
        const Block& b = task.blocks[i];
        std::vector<Int> key{b.step, b.top};
        for (const Hull& h : hulls[i]) key.insert(key.end(), {h.start, h.end, h.bottom, h.top});
        if (b.rects.size() > 1)
            for (const Rect& r : b.rects) key.insert(key.end(), {r.low, r.high, r.start, r.end});
        twin.push_back(b.pin >= 0 ? i : seen.emplace(std::move(key), i).first->second);
    }
}

}  // namespace arena
