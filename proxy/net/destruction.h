// DestructionWatch: for a member function that calls out and must know whether its own object
// was destroyed by the call. For net/ only.
#pragma once

#include <utility>

namespace encore::net {

// The object has a member `bool* watched_ = nullptr`, and its destructor calls
// DestructionWatch::tell. Watches of one object nest.
class DestructionWatch {
 public:
  explicit DestructionWatch(bool*& watched)
      : watched_(watched), outer_(std::exchange(watched, &destroyed_)) {}
  DestructionWatch(const DestructionWatch&) = delete;
  DestructionWatch& operator=(const DestructionWatch&) = delete;
  ~DestructionWatch() {
    if (!destroyed_) {
      watched_ = outer_;
    } else if (outer_ != nullptr) {
      *outer_ = true;
    }
  }
  static void tell(bool* watched) {
    if (watched != nullptr) *watched = true;
  }
  bool destroyed() const { return destroyed_; }

 private:
  bool*& watched_;  // dangles once the object is destroyed
  bool* outer_;
  bool destroyed_ = false;
};

}  // namespace encore::net
