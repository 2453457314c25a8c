// The Python module; see _core.pyi.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "first_fit.hpp"
#include "instance.hpp"
#include "search.hpp"
#include "stock.hpp"
#include "swaps.hpp"

namespace py = pybind11;

namespace arena {

namespace {

using Column = py::array_t<Int, py::array::c_style | py::array::forcecast>;

Time after(double seconds) {
    const auto now = std::chrono::steady_clock::now();
    if (!(seconds < 1e9)) return Time::max();
    return now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

class Instance {
   public:
    Instance(const Column& block, const Column& low, const Column& high, const Column& start, const Column& end,
             const Column& step, const Column& pin, const Column& top, Int unit, int steps) {
        task_.unit = unit;
        task_.steps = steps;
        for (py::ssize_t k = 0; k < step.size(); ++k)
            task_.blocks.push_back({{}, step.at(k), pin.at(k), top.at(k), std::numeric_limits<int>::max(), 0});
        for (py::ssize_t r = 0; r < block.size(); ++r) {
            const Rect rect{low.at(r), high.at(r), static_cast<int>(start.at(r)), static_cast<int>(end.at(r))};
            Block& b = task_.blocks.at(block.at(r));
            b.rects.push_back(rect);
            b.start = std::min(b.start, rect.start);
            b.end = std::max(b.end, rect.end);
        }
        for (const Block& b : task_.blocks)
            if (b.rects.empty()) throw std::invalid_argument("a block without rectangles");
    }

    Int pairs() const { return overlapping_pairs(task_); }

    const Neighbours& near() {
        std::call_once(once_, [this] { near_ = std::make_unique<Neighbours>(task_); });
        return *near_;
    }

    Outcome search(const std::vector<int>& order, Int capacity, Int nodes, Int work, double seconds, Control& control) {
        return arena::search(task_, near(), checked(order), capacity, {nodes, work, after(seconds)}, control);
    }

    std::vector<Int> fit(const std::vector<int>& order) const {
        return first_fit(task_, checked(order), Control{}, Time::max());
    }

    Outcome swap(const std::vector<int>& order, Int target, int rounds, std::uint64_t seed, double seconds,
                 Control& control) const {
        return swap_at_peak(task_, checked(order), target, rounds, seed, after(seconds), control);
    }

   private:
    const std::vector<int>& checked(const std::vector<int>& order) const {
        std::vector<char> seen(task_.blocks.size(), 0);
        bool once = order.size() == seen.size();
        for (int k : order) once = once && 0 <= k && k < static_cast<int>(seen.size()) && !seen[k]++;
        if (!once) throw std::invalid_argument("an order must hold every block once");
        return order;
    }

    Task task_;
    std::once_flag once_;
    std::unique_ptr<Neighbours> near_;
};

}  // namespace

}  // namespace arena

PYBIND11_MODULE(_core, m) {
    using namespace arena;
    using Free = py::call_guard<py::gil_scoped_release>;

    py::enum_<Verdict>(m, "Verdict")
        .value("PLACED", Verdict::placed)
        .value("INFEASIBLE", Verdict::infeasible)
        .value("STOPPED", Verdict::stopped);

    py::class_<Control>(m, "Control")
        .def(py::init<>())
        .def("cancel", [](Control& c) { c.cancelled = true; })
        .def_property_readonly("nodes", [](const Control& c) { return c.nodes.load(); });

    py::class_<Outcome>(m, "Outcome")
        .def_readonly("verdict", &Outcome::verdict)
        .def_readonly("bases", &Outcome::bases)
        .def_readonly("nodes", &Outcome::nodes)
        .def_readonly("work", &Outcome::work);

    m.def(
        "stock_greedy",
        [](const std::vector<Int>& sizes, const std::vector<Int>& starts, const std::vector<Int>& ends) {
            std::vector<Request> requests;
            for (std::size_t k = 0; k < sizes.size(); ++k) requests.push_back({sizes[k], starts.at(k), ends.at(k)});
            return stock_greedy(requests);
        },
        Free(), py::arg("sizes"), py::arg("starts"), py::arg("ends"));

    py::class_<Instance>(m, "Instance")
        .def(py::init<const Column&, const Column&, const Column&, const Column&, const Column&, const Column&,
                      const Column&, const Column&, Int, int>(),
             py::arg("block"), py::arg("low"), py::arg("high"), py::arg("start"), py::arg("end"), py::arg("step"),
             py::arg("pin"), py::arg("top"), py::arg("unit"), py::arg("steps"))
        .def_property_readonly("pairs", &Instance::pairs)
        .def_property_readonly("exact", [](Instance& i) { return i.near().exact; })
        .def("first_fit", &Instance::fit, Free(), py::arg("order"))
        .def("search", &Instance::search, Free(), py::arg("order"), py::arg("capacity"), py::arg("nodes"),
             py::arg("work"), py::arg("seconds"), py::arg("control"))
        .def("swap_at_peak", &Instance::swap, Free(), py::arg("order"), py::arg("target"), py::arg("rounds"),
             py::arg("seed"), py::arg("seconds"), py::arg("control"));
}
