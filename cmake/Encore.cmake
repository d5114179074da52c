# How every target of the house is built, and the three ways to make one.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
# Its own target says that it is a library: in headers alone it is compiled into each file that logs.
find_package(spdlog REQUIRED)

find_program(ENCORE_CCACHE ccache)
if(ENCORE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${ENCORE_CCACHE})
endif()

# Most of what a source takes to compile is what its headers instantiate. Twelve sources of a library
# compiled as one take a quarter of the time of the twelve. The presets do so, but those for planted faults
# and for ./dev lint, which shows that each source includes what it uses.
option(ENCORE_UNITY "Compile the sources of a library in groups of twelve, those of a test of sixteen" OFF)

add_library(encore_options INTERFACE)
target_include_directories(encore_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(encore_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-align -Wimplicit-fallthrough)
if(ENCORE_WARNINGS_ARE_ERRORS)
  target_compile_options(encore_options INTERFACE -Werror)
endif()
# Profilers walk the stack by it; as released, its register and instructions are worth more.
if(NOT CMAKE_BUILD_TYPE STREQUAL Release)
  target_compile_options(encore_options INTERFACE -fno-omit-frame-pointer)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own std::stable_sort calls what it declares deprecated, and clang says so.
  target_compile_options(encore_options INTERFACE -Wthread-safety -Wno-deprecated-declarations)
  if(ENCORE_UNITY)
    # In a group of sources a parameter may be named as something of another source.
    target_compile_options(encore_options INTERFACE -Wno-shadow)
  endif()
else()
  target_compile_options(encore_options INTERFACE -fpch-preprocess)
  # An eighth of the compiler's time goes into collecting its garbage, a GiB a source at most.
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR enough_mib "3000 * ${cores}")
  if(memory_mib GREATER enough_mib)
    target_compile_options(encore_options INTERFACE --param=ggc-min-heapsize=1048576)
  endif()
endif()
target_compile_definitions(encore_options INTERFACE ENCORE_VERSION="${PROJECT_VERSION}")
target_link_libraries(encore_options INTERFACE Threads::Threads)
if(ENCORE_SANITIZE)
  # The check of vtable pointers needs a descriptor to look at memory: where a test leaves none, it
  # calls every object a stranger.
  target_compile_options(encore_options INTERFACE -fsanitize=${ENCORE_SANITIZE}
                         -fno-sanitize=vptr -fno-sanitize-recover=all)
  target_link_options(encore_options INTERFACE -fsanitize=${ENCORE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 sees uninitialised members in <regex> and <functional>, and copies beyond a short
    # string's own bytes, through its own checks: the builds without them are where it is asked.
    target_compile_options(encore_options INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds
                           -Wno-stringop-overflow -Wno-restrict)
  endif()
endif()

# The standard headers, compiled once: half of what a source of ours takes to compile.
add_library(encore_precompiled STATIC ${CMAKE_CURRENT_LIST_DIR}/precompiled/standard.cc)
target_link_libraries(encore_precompiled PUBLIC encore_options)
target_precompile_headers(encore_precompiled PRIVATE ${CMAKE_CURRENT_LIST_DIR}/precompiled/standard.h)
# The same for libraries that a shared object may be linked from: the Python module, a program of others.
add_library(encore_precompiled_shared STATIC ${CMAKE_CURRENT_LIST_DIR}/precompiled/standard.cc)
target_link_libraries(encore_precompiled_shared PUBLIC encore_options)
target_precompile_headers(encore_precompiled_shared PRIVATE ${CMAKE_CURRENT_LIST_DIR}/precompiled/standard.h)

# In builds for work, libraries that compute for long are optimised as released: the tests of filters, caches
# and simulator take a third of the time. Not under sanitizers, whose builds leave most of those tests out. Nor
# where each source is compiled alone: with assertions, g++ 12 then warns of accesses that do not exist.
set(ENCORE_COMPUTING)
if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo AND ENCORE_UNITY AND NOT ENCORE_SANITIZE)
  set(ENCORE_COMPUTING -O2)
endif()

# Hidden symbols cannot be replaced, so that the compiler treats their calls as those within a program.
# The libraries that compute for long are among them, and all of them share a precompiled header, which is
# of one level of optimisation.
function(encore_for_shared target)
  target_compile_options(${target} PRIVATE ${ENCORE_COMPUTING})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
encore_for_shared(encore_precompiled_shared)

# Compiles the target in groups of at most `most` sources, each about as large as the others. A helper in
# an anonymous namespace needs a name that no other source of its group has.
function(encore_group target most)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR groups "(${count} + ${most} - 1) / ${most}")
  math(EXPR size "(${count} + ${groups} - 1) / ${groups}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ENCORE_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# encore_library(NAME [GLUE] [SHARED] [DIRECTORY D] [LINK targets...] [EXCLUDE files...])
# A static library encore_NAME of every .cc in the directory (not below it). LINK is the layering
# rule: what is not linked cannot be used. GLUE is what only reads options and prints, through
# libraries whose templates take longest to optimise where they are instrumented: under sanitizers it
# is left as it is written. SHARED: shared objects may link it.
function(encore_library name)
  cmake_parse_arguments(ARG "GLUE;SHARED" "DIRECTORY" "LINK;EXCLUDE" ${ARGN})
  if(NOT ARG_DIRECTORY)
    set(ARG_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_DIRECTORY}/*.cc)
  foreach(file IN LISTS ARG_EXCLUDE)
    list(REMOVE_ITEM sources ${ARG_DIRECTORY}/${file})
  endforeach()
  if(sources)
    add_library(encore_${name} STATIC ${sources})
    encore_group(encore_${name} 12)
    if(ARG_SHARED)
      encore_for_shared(encore_${name})
      set(precompiled encore_precompiled_shared)
    else()
      set(precompiled encore_precompiled)
    endif()
    # The options are ours alone: programs that find_package(encore-sim) have their own.
    target_link_libraries(encore_${name} PUBLIC $<BUILD_INTERFACE:encore_options> ${ARG_LINK})
    if(ARG_GLUE AND ENCORE_SANITIZE)
      target_compile_options(encore_${name} PRIVATE -O0)
      target_precompile_headers(encore_${name} PRIVATE
                                ${CMAKE_SOURCE_DIR}/cmake/precompiled/standard.h)
    else()
      target_precompile_headers(encore_${name} REUSE_FROM ${precompiled})
    endif()
  else()
    add_library(encore_${name} INTERFACE)
    target_link_libraries(encore_${name} INTERFACE encore_options ${ARG_LINK})
  endif()
endfunction()

# Builds what runs under the thread sanitizer: the tests labelled concurrent.
add_custom_target(concurrent)

# encore_test(NAME [COMPUTES] [LINK targets...] [LABELS labels...] [THREADS tags] [WITH files...])
#
# A Catch2 program NAME_test of every *_test.cc in tests/NAME's directory, registered with CTest
# case by case is slow to start; the program is one CTest test, run in random order. WITH: sources of
# other directories. THREADS: which cases have threads, where the others take long: under the thread
# sanitizer those alone run. What is tagged [plain] computes for long, and what a sanitizer could see of
# it others show: not run there (nor what is hidden, which Catch2 takes for chosen where a choice only
# leaves out). Elsewhere it is a CTest test of its own, NAME_long, that ./dev test --all runs, with what
# is tagged [long].
# Tests are compiled as they are written: under sanitizers, more than half of the compiler's time goes into
# making them faster. COMPUTES: those of this program take longer than that.
function(encore_test name)
  cmake_parse_arguments(ARG "COMPUTES" "THREADS" "LINK;LABELS;WITH" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources} ${ARG_WITH})
  target_link_libraries(${name}_test PRIVATE encore_test_main ${ARG_LINK})
  if(ARG_COMPUTES)
    target_precompile_headers(${name}_test REUSE_FROM encore_test_main)
  else()
    target_compile_options(${name}_test PRIVATE -O0)
    target_precompile_headers(${name}_test REUSE_FROM encore_test_plain)
  endif()
  encore_group(${name}_test 16)
  if(ENCORE_SANITIZE MATCHES thread)
    set(cases ${ARG_THREADS})
  elseif(ENCORE_SANITIZE)
    set(cases "~[plain]~[.]")
  else()
    set(cases "~[plain]~[long]~[.]")
  endif()
  set(options --order rand --rng-seed time --warn NoAssertions)
  add_test(NAME ${name} COMMAND ${name}_test ${cases} ${options})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS};unit")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} tagged REGEX "\\]\\[(plain|long)\\]" LIMIT_COUNT 1)
    if(tagged AND NOT ENCORE_SANITIZE)
      add_test(NAME ${name}_long COMMAND ${name}_test "[plain]~[.],[long]~[.]" ${options})
      set_tests_properties(${name}_long PROPERTIES LABELS "${ARG_LABELS};unit;long" COST 1)
      break()
    endif()
  endforeach()
  if(concurrent IN_LIST ARG_LABELS)
    add_dependencies(concurrent ${name}_test)
  endif()
endfunction()
