// ExecuTorch's greedy, restated; see solvers/place/stock.py.
#pragma once

#include <utility>
#include <vector>

#include "instance.hpp"

namespace arena {

struct Request {
    Int size, start, end;
};

// The bucket of each request and its place in the bucket, and the sizes of the buckets; in the order given.
std::pair<std::vector<std::pair<int, Int>>, std::vector<Int>> stock_greedy(const std::vector<Request>& requests);

}  // namespace arena
