#include "search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace arena {

namespace {

constexpr Int kFar = std::numeric_limits<Int>::max() / 4;
constexpr Int kCheck = 64;  // nodes between two looks at the limits

// Blocks to come that live in the sections [low, high), linked from `head`.
struct Part {
    int head, low, high;
    int creator;  // the frame whose branch made this part, -1 for none
};

enum class Branch : char { take, put_off, none };

struct Frame {
    Part part;
    int block;
    Branch next;
    std::size_t trail, taken, late, pending;  // sizes before the first branch
};

// What is undone on the way back.
struct Change {
    enum Kind : char { low, least, late, section } kind;
    int where;
    int witness;
    Int old;
};

class Search {
   public:
    Search(const Task& task, const Neighbours& near, const std::vector<int>& order, Int capacity, const Limits& limits,
           Control& control)
        : task_(task), near_(near), limits_(limits), control_(control), n_(static_cast<int>(task.blocks.size())) {
        rank_.resize(n_);
        for (int r = 0; r < n_; ++r) rank_[order[r]] = r;
        set_up_blocks(order, capacity);
        set_up_sections();
        link();
    }

    Outcome run() {
        Verdict verdict = possible_ ? walk() : Verdict::infeasible;
        control_.nodes += nodes_ % kCheck;
        if (verdict == Verdict::infeasible && !near_.exact) verdict = Verdict::stopped;
        return {verdict, verdict == Verdict::placed ? low_ : std::vector<Int>{}, nodes_, work_};
    }

   private:
    void set_up_blocks(const std::vector<int>& order, Int capacity) {
        low_.assign(n_, 0);
        highest_.resize(n_);
        is_taken_.assign(n_, 0);
        is_late_.assign(n_, 0);
        witnessed_.assign(n_, 0);
        ceiling_ = 0;
        for (int k = 0; k < n_; ++k) {
            highest_[k] = task_.highest_base(k, capacity);
            if (task_.blocks[k].pin >= 0) {
                pinned_ = true;
                low_[k] = task_.blocks[k].pin;
            }
            for (const Hull& h : near_.hulls[k])
                if (highest_[k] >= 0) ceiling_ = std::max(ceiling_, highest_[k] + h.top);
        }
        for (int k = 0; k < n_; ++k) {
            if (pinned_ && task_.blocks[k].pin < 0) low_[k] = around_pins(k, 0);
            if (low_[k] > highest_[k]) possible_ = false;
        }
        least_ = low_;
        reached_ = low_;
        elder_twin_.assign(n_, -1);
        std::vector<int> youngest(n_, -1);
        for (int k : order) {
            elder_twin_[k] = youngest[near_.twin[k]];
            youngest[near_.twin[k]] = k;
        }
    }

    void set_up_sections() {
        to_come_.assign(near_.sections, 0);
        lowest_.assign(near_.sections, kFar);
        witness_.assign(near_.sections, -1);
        is_dirty_.assign(near_.sections, 0);
        crossing_.assign(near_.sections + 1, 0);
        for (int k = 0; k < n_; ++k) {
            for (const Hull& h : near_.hulls[k])
                for (int s = h.start; s < h.end; ++s) to_come_[s] += h.top - h.bottom;
            for (int s = near_.begin[k] + 1; s < near_.end[k]; ++s) ++crossing_[s];
        }
        for (int s = 0; s < near_.sections; ++s) soil(s);
        if (!settle()) possible_ = false;
        trail_.clear();
    }

    // A list of the blocks to come by first section, so that each part of the sections has its own stretch of it.
    void link() {
        std::vector<int> by_begin(n_);
        std::iota(by_begin.begin(), by_begin.end(), 0);
        std::stable_sort(by_begin.begin(), by_begin.end(),
                         [&](int a, int b) { return near_.begin[a] < near_.begin[b]; });
        next_.assign(n_ + 1, n_);
        previous_.assign(n_ + 1, n_);
        int at = n_;
        for (int k : by_begin) {
            next_[at] = k;
            previous_[k] = at;
            at = k;
        }
        next_[at] = n_;
        previous_[n_] = at;
    }

    Verdict walk() {
        split(next_[n_], 0, near_.sections, -1);
        while (!pending_.empty()) {
            const Part part = pending_.back();
            pending_.pop_back();
            int at = part.creator;
            const int block = bounds_hold(part) ? choose(part) : -1;
            if (block >= 0) {
                at = static_cast<int>(frames_.size());
                frames_.push_back(
                    {part, block, Branch::take, trail_.size(), taken_.size(), late_.size(), pending_.size()});
            }
            for (;; at = frames_[at].part.creator) {
                if (at < 0) return Verdict::infeasible;
                frames_.resize(at + 1);
                if (descend(at)) break;
                if (stopped_) return Verdict::stopped;
            }
        }
        return Verdict::placed;
    }

    // Go down the next branch of a frame that does not fail at once; false if there is none left.
    bool descend(int at) {
        Frame& f = frames_[at];
        const int k = f.block;
        undo(f);
        if (f.next == Branch::take) {
            f.next = Branch::put_off;
            if (++nodes_ % kCheck == 0 && (stopped_ = out_of_limits())) return false;
            if (take(k)) {
                split(f.part.head == k ? next_[k] : f.part.head, f.part.low, f.part.high, at);
                return true;
            }
            undo(f);
        }
        if (f.next == Branch::none) return false;
        f.next = Branch::none;
        const bool alone = !inside(next_[f.part.head], f.part);
        if (task_.blocks[k].pin >= 0 || alone) return false;  // nothing to come is under it
        is_late_[k] = 1;
        late_.push_back(k);
        trail_.push_back({Change::late, k, 0, 0});
        pending_.push_back({f.part.head, f.part.low, f.part.high, at});
        return true;
    }

    bool out_of_limits() {
        control_.nodes.fetch_add(kCheck, std::memory_order_relaxed);
        if (nodes_ > limits_.nodes || work_ > limits_.work) return true;
        return control_.over(limits_.deadline);
    }

    bool inside(int k, const Part& part) const { return k != n_ && near_.begin[k] < part.high; }
    Int height(int k) const { return low_[k] + near_.anchor[k]; }
    bool lower(int a, int b) const { return height(a) != height(b) ? height(a) < height(b) : rank_[a] < rank_[b]; }

    // Add the parts of [low, high) that nothing to come connects, the smaller ones on top.
    void split(int head, int low, int high, int creator) {
        const std::size_t begin = pending_.size();
        int from = low;
        for (int s = low + 1; s <= high; ++s) {
            if (s < high && crossing_[s]) continue;
            if (inside(head, {head, from, s, 0})) {
                pending_.push_back({head, from, s, creator});
                if (s < high)
                    while (head != n_ && near_.begin[head] < s) head = next_[head];
            }
            from = s;
        }
        if (pending_.size() > begin + 1)
            std::stable_sort(pending_.begin() + begin, pending_.end(),
                             [](const Part& a, const Part& b) { return a.high - a.low > b.high - b.low; });
    }

    // Take block `k` at its lowest base, all neighbours to come above it; false if one of them, or a section, has no
    // room left.
    bool take(int k) {
        next_[previous_[k]] = next_[k];
        previous_[next_[k]] = previous_[k];
        taken_.push_back(k);
        is_taken_[k] = 1;
        for (int s = near_.begin[k] + 1; s < near_.end[k]; ++s) --crossing_[s];
        for (const Hull& h : near_.hulls[k])
            for (int s = h.start; s < h.end; ++s) {
                to_come_[s] -= h.top - h.bottom;
                if (witness_[s] == k) soil(s);
            }
        const std::size_t end = near_.first[k + 1];
        work_ += static_cast<Int>(end - near_.first[k]) + near_.end[k] - near_.begin[k];
        bool fits = low_[k] <= highest_[k];
        for (std::size_t e = near_.first[k]; fits && e < end; ++e)
            if (!is_taken_[near_.other[e]]) fits = raise(near_.other[e], low_[k] + near_.height[e]);
        return settle() && fits;
    }

    // A neighbour is now under block `j`, which must lie no lower than `base`.
    bool raise(int j, Int base) {
        if (is_late_[j]) {
            is_late_[j] = 0;
            trail_.push_back({Change::late, j, 0, 1});
        }
        if (base <= low_[j]) return true;
        if (task_.blocks[j].pin >= 0) return false;
        trail_.push_back({Change::low, j, 0, low_[j]});
        low_[j] = pinned_ ? around_pins(j, base) : round_up(base, task_.blocks[j].step);
        raise_least(j, low_[j]);
        return low_[j] <= highest_[j];
    }

    void raise_least(int j, Int least) {
        if (least <= least_[j]) return;
        trail_.push_back({Change::least, j, 0, least_[j]});
        least_[j] = least;
        if (!witnessed_[j]) return;
        work_ += near_.end[j] - near_.begin[j];
        for (int s = near_.begin[j]; s < near_.end[j]; ++s)
            if (witness_[s] == j) soil(s);
    }

    // The lowest base of `k` from `base` up that avoids the pinned blocks to come.
    Int around_pins(int k, Int base) const {
        const Int step = task_.blocks[k].step;
        base = round_up(base, step);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t e = near_.first[k]; e < near_.first[k + 1]; ++e) {
                const int p = near_.other[e];
                const Int pin = task_.blocks[p].pin;
                if (pin < 0 || is_taken_[p] || base + near_.height[e] <= pin) continue;
                const Int above = round_up(std::max<Int>(0, pin + near_.under[e]), step);
                if (above > base) {
                    base = above;
                    moved = true;
                }
            }
        }
        return base;
    }

    void soil(int s) {
        if (!is_dirty_[s]) dirty_.push_back(s);
        is_dirty_[s] = 1;
    }

    // Find the lowest block to come anew where it has changed; false if what is to come does not fit above it.
    bool settle() {
        bool fits = true;
        for (int s : dirty_) {
            is_dirty_[s] = 0;
            if (!fits) continue;
            Int lowest = kFar;
            int witness = -1;
            work_ += near_.live_first[s + 1] - near_.live_first[s];
            for (std::size_t l = near_.live_first[s]; l < near_.live_first[s + 1]; ++l) {
                const Live& live = near_.live[l];
                if (is_taken_[live.block] || least_[live.block] + live.bottom >= lowest) continue;
                lowest = least_[live.block] + live.bottom;
                witness = live.block;
            }
            trail_.push_back({Change::section, s, witness_[s], lowest_[s]});
            set_witness(s, witness, lowest);
            if (witness >= 0 && lowest + to_come_[s] > ceiling_) fits = false;
        }
        dirty_.clear();
        return fits;
    }

    void set_witness(int s, int witness, Int lowest) {
        if (witness_[s] >= 0) --witnessed_[witness_[s]];
        if (witness >= 0) ++witnessed_[witness];
        witness_[s] = witness;
        lowest_[s] = lowest;
    }

    // Least bases of the blocks that are put off: above the lowest that could be under each. False if one has no room,
    // if nothing needs to be under one, or if a section is too full.
    bool bounds_hold(const Part& part) {
        now_late_.clear();
        for (int k : late_)
            if (is_late_[k] && part.low <= near_.begin[k] && near_.begin[k] < part.high) now_late_.push_back(k);
        for (int k : now_late_) reached_[k] = kFar;
        for (bool changed = true; changed;) {
            changed = false;
            for (int k : now_late_) {
                Int least = kFar;
                for (std::size_t e = near_.first[k]; e < near_.first[k + 1]; ++e) {
                    const int j = near_.other[e];
                    if (!is_taken_[j]) least = std::min(least, (is_late_[j] ? reached_[j] : least_[j]) + near_.under[e]);
                }
                work_ += near_.first[k + 1] - near_.first[k];
                if (least < kFar) least = round_up(std::max(least, low_[k]), task_.blocks[k].step);
                if (least < reached_[k]) {
                    reached_[k] = least;
                    changed = true;
                }
            }
        }
        bool hold = true;
        for (int k : now_late_) {
            if (reached_[k] > highest_[k]) hold = false;
            raise_least(k, reached_[k]);
        }
        for (int k : now_late_) hold = hold && !stands_clear(k);
        return settle() && hold;
    }

    // Would all that is to come leave `k` room at its lowest base?
    bool stands_clear(int k) const {
        for (std::size_t e = near_.first[k]; e < near_.first[k + 1]; ++e)
            if (!is_taken_[near_.other[e]] && least_[near_.other[e]] < low_[k] + near_.height[e]) return false;
        return true;
    }

    bool is_open(int k) const {
        return !is_taken_[k] && !is_late_[k] && (elder_twin_[k] < 0 || is_taken_[elder_twin_[k]]) &&
               (!pinned_ || (task_.blocks[k].pin < 0 && !above_pin(k)));
    }

    // Is a pinned block to come lower than `k`, its neighbour? Then it comes first.
    bool above_pin(int k) const {
        for (std::size_t e = near_.first[k]; e < near_.first[k + 1]; ++e) {
            const int p = near_.other[e];
            if (task_.blocks[p].pin >= 0 && !is_taken_[p] && height(p) < height(k)) return true;
        }
        return false;
    }

    // Which block to take next; -1 if there is none, which proves that the part cannot be finished.
    int choose(const Part& part) {
        int tight = -1;
        Int least_room = kFar;
        for (int s = part.low; s < part.high; ++s) {
            if (witness_[s] < 0) continue;
            const Int room = ceiling_ - lowest_[s] - to_come_[s];
            if (room < least_room || (room == least_room && lowest_[s] < lowest_[tight])) {
                least_room = room;
                tight = s;
            }
        }
        work_ += part.high - part.low;
        int best = -1;
        for (std::size_t l = near_.live_first[tight]; l < near_.live_first[tight + 1]; ++l) {
            const int k = near_.live[l].block;
            if (is_open(k) && (best < 0 || lower(k, best))) best = k;
        }
        if (best < 0)
            for (int k = part.head; inside(k, part); k = next_[k])
                if (is_open(k) && (best < 0 || lower(k, best))) best = k;
        if (best < 0) return lowest_pin(part);
        for (int from = -1; from != best;) {
            from = best;
            for (std::size_t e = near_.first[from]; e < near_.first[from + 1]; ++e) {
                const int j = near_.other[e];
                if (is_open(j) && lower(j, best)) best = j;
            }
            work_ += near_.first[from + 1] - near_.first[from];
        }
        return best;
    }

    // When all else is put off or above a pinned block, the lowest pinned block is the lowest of all.
    int lowest_pin(const Part& part) {
        int best = -1;
        if (!pinned_) return best;
        for (int k = part.head; inside(k, part); k = next_[k])
            if (task_.blocks[k].pin >= 0 && (best < 0 || lower(k, best))) best = k;
        if (best < 0) return best;
        for (std::size_t e = near_.first[best]; e < near_.first[best + 1]; ++e) {
            const int j = near_.other[e];
            if (!is_late_[j]) continue;  // it may go back to where it was, now above this block
            is_late_[j] = 0;
            trail_.push_back({Change::late, j, 0, 1});
        }
        return best;
    }

    // Back to what was before a frame's branches.
    void undo(const Frame& f) {
        for (; trail_.size() > f.trail; trail_.pop_back()) {
            const Change& c = trail_.back();
            switch (c.kind) {
                case Change::low: low_[c.where] = c.old; break;
                case Change::least: least_[c.where] = c.old; break;
                case Change::late: is_late_[c.where] = static_cast<char>(c.old); break;
                case Change::section: set_witness(c.where, c.witness, c.old); break;
            }
        }
        for (; taken_.size() > f.taken; taken_.pop_back()) {
            const int k = taken_.back();
            is_taken_[k] = 0;
            next_[previous_[k]] = k;
            previous_[next_[k]] = k;
            for (int s = near_.begin[k] + 1; s < near_.end[k]; ++s) ++crossing_[s];
            for (const Hull& h : near_.hulls[k])
                for (int s = h.start; s < h.end; ++s) to_come_[s] += h.top - h.bottom;
        }
        late_.resize(f.late);
        pending_.resize(f.pending);
    }

    const Task& task_;
    const Neighbours& near_;
    const Limits& limits_;
    Control& control_;
    const int n_;
    Int ceiling_ = 0;  // no rectangle ends above it, units
    bool pinned_ = false, possible_ = true, stopped_ = false;
    Int nodes_ = 0, work_ = 0;

    std::vector<int> rank_, elder_twin_, next_, previous_;  // by block
    std::vector<Int> low_, highest_;  // the lowest base above those taken, and the highest within the capacity
    std::vector<Int> least_;          // no plan from here puts the block lower
    std::vector<Int> reached_;        // the same while it is worked out
    std::vector<char> is_taken_, is_late_;
    std::vector<int> witnessed_;  // sections whose lowest block it is

    std::vector<Int> to_come_, lowest_;  // by section: total of the blocks to come, and the least bottom of them
    std::vector<int> witness_;           // whose bottom that is
    std::vector<char> is_dirty_;
    std::vector<int> crossing_;  // by border before a section: blocks to come that live on both sides

    std::vector<Part> pending_;
    std::vector<Frame> frames_;
    std::vector<Change> trail_;
    std::vector<int> taken_, late_, now_late_, dirty_;
};

}  // namespace

Outcome search(const Task& task, const Neighbours& near, const std::vector<int>& order, Int capacity,
               const Limits& limits, Control& control) {
    return Search(task, near, order, capacity, limits, control).run();
}

}  // namespace arena
