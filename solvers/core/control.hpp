// How a call is stopped.
#pragma once

#include <atomic>
#include <chrono>

#include "instance.hpp"

namespace arena {

using Time = std::chrono::steady_clock::time_point;

// Stops a call from outside, and tells how far it is.
struct Control {
    std::atomic<bool> cancelled{false};
    std::atomic<Int> nodes{0};

    bool over(Time deadline) const {
        return cancelled.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() >= deadline;
    }
};

}  // namespace arena
