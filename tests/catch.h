// Catch2, version 2 or 3, under one name. Tests include this and nothing else of Catch2.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>  // IWYU pragma: export
using Catch::Approx;
#else
#include <catch2/catch.hpp>  // IWYU pragma: export
#endif
