// Numbers and durations for people to read, who do not read them back. Pure functions, thread-safe.
#pragma once

#include <chrono>
#include <string>

namespace encore {

// The two largest units that count, as "2h 5m", "6d 14h"; below two minutes in seconds: "45s".
std::string about_duration(std::chrono::seconds duration);
// So many digits that count, never an exponent: "0.00001", "100000", "3.142".
std::string plain_number(double value, int digits);

}  // namespace encore
