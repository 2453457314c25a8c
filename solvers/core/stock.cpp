#include "stock.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace arena {

namespace {

constexpr Int kNever = std::numeric_limits<Int>::min();

// Requests by start, with the latest end of those placed in a tree over them: finds all placed that live in a span.
class Placed {
   public:
    explicit Placed(const std::vector<Request>& requests) : requests_(requests), by_start_(requests.size()) {
        std::iota(by_start_.begin(), by_start_.end(), 0);
        std::sort(by_start_.begin(), by_start_.end(), [&](int a, int b) {
            return requests[a].start != requests[b].start ? requests[a].start < requests[b].start : a < b;
        });
        position_.resize(by_start_.size());
        for (std::size_t p = 0; p < by_start_.size(); ++p) position_[by_start_[p]] = p;
        while (leaves_ < by_start_.size()) leaves_ *= 2;
        latest_.assign(2 * leaves_, kNever);
    }

    void add(int k) {
        for (std::size_t node = leaves_ + position_[k]; node; node /= 2)
            latest_[node] = std::max(latest_[node], requests_[k].end);
    }

    template <class Visit>
    void each(Int start, Int end, Visit&& visit, std::size_t node = 1) const {
        if (latest_[node] <= start) return;
        if (node >= leaves_) {
            const int k = by_start_[node - leaves_];
            if (requests_[k].start < end) visit(k);
            return;
        }
        each(start, end, visit, 2 * node);
        std::size_t first = 2 * node + 1;  // its first leaf tells whether anything there starts in time
        while (first < leaves_) first *= 2;
        if (first - leaves_ < by_start_.size() && requests_[by_start_[first - leaves_]].start < end)
            each(start, end, visit, 2 * node + 1);
    }

   private:
    const std::vector<Request>& requests_;
    std::vector<int> by_start_;
    std::vector<std::size_t> position_;
    std::size_t leaves_ = 1;
    std::vector<Int> latest_;
};

}  // namespace

std::pair<std::vector<std::pair<int, Int>>, std::vector<Int>> stock_greedy(const std::vector<Request>& requests) {
    std::vector<std::pair<int, Int>> home;
    std::vector<Int> sizes, tops;
    Placed placed(requests);
    for (std::size_t k = 0; k < requests.size(); ++k) {
        const Request& r = requests[k];
        tops.assign(sizes.size() + 1, -1);  // of those that live with it, by bucket; the last stands for a new one
        placed.each(r.start, r.end, [&](int j) {
            Int& top = tops[home[j].first];
            top = std::max(top, home[j].second + requests[j].size);
        });
        const int fresh = static_cast<int>(sizes.size());
        int bucket = static_cast<int>(std::find(tops.begin(), tops.end(), -1) - tops.begin());
        if (bucket == fresh)
            for (int b = 0; b < fresh; ++b)
                if (tops[b] > 0 && tops[b] + r.size <= sizes[b]) {
                    bucket = b;
                    break;
                }
        if (bucket == fresh) sizes.push_back(r.size);
        home.emplace_back(bucket, std::max<Int>(0, tops[bucket]));
        placed.add(static_cast<int>(k));
    }
    return {home, sizes};
}

}  // namespace arena
