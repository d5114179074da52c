#include "sim/report/chart_js.h"

#ifdef ENCORE_CHART_JS
// A file of some hundred kilobytes goes in by the assembler: compilers are slow at such literals.
__asm__(
    ".pushsection .rodata\n"
    "encore_chart_js_begin:\n"
    ".incbin \"" ENCORE_CHART_JS
    "\"\n"
    "encore_chart_js_end:\n"
    ".byte 0\n"
    ".popsection\n"
    ".global encore_chart_js_begin\n"
    ".global encore_chart_js_end\n");
extern "C" const char encore_chart_js_begin[];
extern "C" const char encore_chart_js_end[];
#endif

namespace encore::sim {

std::string_view chart_js() noexcept {
#ifdef ENCORE_CHART_JS
  return {encore_chart_js_begin, encore_chart_js_end};
#else
  return {};
#endif
}

}  // namespace encore::sim
