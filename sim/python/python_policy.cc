#include "sim/python/python_policy.h"

#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/replay/own_policy.h"

namespace encore::sim::python {
namespace {

// Lets go of a Python object in whichever thread.
struct UnderLock {
  template <typename T>
  void operator()(T* held) const {
    const py::gil_scoped_acquire lock;
    delete held;
  }
};
template <typename T, typename... Arguments>
std::shared_ptr<T> shared_under_lock(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T{std::forward<Arguments>(arguments)...}, UnderLock{});
}

// The methods of a policy, found once.
struct Methods {
  explicit Methods(const py::object& policy)
      : type(py::str(py::type::of(policy).attr("__name__"))),
        hit(policy.attr("hit")),
        insert(policy.attr("insert")),
        evict(policy.attr("evict")),
        remove(policy.attr("remove")),
        admit(policy.attr("admit")) {}

  std::string type;
  py::object hit;
  py::object insert;
  py::object evict;
  py::object remove;
  py::object admit;
};

// As an order of entries. Objects have the numbers that the trace's table gives them.
class PythonOrder {
 public:
  PythonOrder(cache::EntrySlab& /*slab*/, const std::shared_ptr<const Methods>& methods)
      : methods_(methods) {}

  bool admits(const ReplayRequest& request) {
    return call(methods_->admit, request).template cast<bool>();
  }
  void insert(cache::EntryRef ref, const ReplayRequest& request) {
    if (ref >= objects_.size()) {
      objects_.resize(ref + std::size_t{1});
    }
    objects_[ref] = request.object;
    refs_[request.object] = ref;
    call(methods_->insert, request);
  }
  void hit(cache::EntryRef /*ref*/, const ReplayRequest& request) { call(methods_->hit, request); }
  // The policy has named an evicted object itself.
  void remove(cache::EntryRef ref, cache::Removal why) {
    const std::uint32_t object = objects_[ref];
    refs_.erase(object);
    if (why != cache::Removal::kEvicted) {
      methods_->remove(object);
    }
  }
  cache::EntryRef victim() {
    const py::object answer = methods_->evict();
    const auto found = refs_.find(number_of(answer));
    if (found == refs_.end()) {
      throw py::value_error(methods_->type + ".evict() returned " + std::string(py::repr(answer)) +
                            ", accepted: the number of an object that is in the cache");
    }
    return found->second;
  }

 private:
  static py::object call(const py::object& method, const ReplayRequest& request) {
    return method(request.object, charge_of(request), request.time_ns);
  }
  // Returns a number that no object has, if it is none.
  static std::uint64_t number_of(const py::object& answer) {
    if (!py::hasattr(answer, "__index__")) {
      return UINT64_MAX;
    }
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(answer.ptr()));
    const std::uint64_t value = number ? PyLong_AsUnsignedLongLong(number.ptr()) : UINT64_MAX;
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return UINT64_MAX;
    }
    return value;
  }

  std::shared_ptr<const Methods> methods_;
  std::unordered_map<std::uint64_t, cache::EntryRef> refs_;
  std::vector<std::uint32_t> objects_;
};

class PythonCache final : public DirectCacheOf<PythonOrder> {
 public:
  PythonCache(const ReplayOptions& options, const std::shared_ptr<const Methods>& methods,
              PolicyFailure& failure)
      : DirectCacheOf(options, methods), failure_(failure) {}

  // After an error the cache is of no use, and nothing reads it.
  void feed(std::span<const ReplayRequest> requests, const Counted& counted) override {
    if (failure_.is_set()) {
      return;
    }
    const py::gil_scoped_acquire lock;
    try {
      DirectCacheOf::feed(requests, counted);
    } catch (...) {
      failure_.set(std::current_exception());
    }
  }

 private:
  PolicyFailure& failure_;
};

struct Maker {
  py::object make;
};

}  // namespace

void PolicyFailure::set(std::exception_ptr error) {
  const MutexLock lock(mutex_);
  if (error_ == nullptr) {
    error_ = std::move(error);
  }
  monitor_.stop = true;
}

bool PolicyFailure::is_set() const {
  const MutexLock lock(mutex_);
  return error_ != nullptr;
}

void PolicyFailure::raise() const {
  std::exception_ptr error;
  {
    const MutexLock lock(mutex_);
    error = error_;
  }
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

OwnCache python_policy(const py::object& make, PolicyFailure& failure) {
  const auto maker = shared_under_lock<Maker>(make);
  return [maker, &failure](const ReplayOptions& options) -> std::unique_ptr<DirectCache> {
    const py::gil_scoped_acquire lock;
    try {
      const auto methods =
          shared_under_lock<const Methods>(maker->make(options.kernel.capacity_bytes));
      return std::make_unique<PythonCache>(options, methods, failure);
    } catch (...) {
      failure.set(std::current_exception());
      return nullptr;
    }
  };
}

}  // namespace encore::sim::python
