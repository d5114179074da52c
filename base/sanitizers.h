// Which sanitizer this build has: ENCORE_ADDRESS_SANITIZER and ENCORE_THREAD_SANITIZER are defined
// or not. GCC and clang have different names for it.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define ENCORE_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define ENCORE_THREAD_SANITIZER 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(ENCORE_ADDRESS_SANITIZER)
#define ENCORE_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer) && !defined(ENCORE_THREAD_SANITIZER)
#define ENCORE_THREAD_SANITIZER 1
#endif
#endif
