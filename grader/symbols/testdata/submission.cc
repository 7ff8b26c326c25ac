/* A submission for list_test: what must be listed of it, and what not. */
#include <cstddef>
#include <new>

#include "grader/symbols/testdata/beside.h"

/* Everybody has copies of these. */
template <typename T> __attribute__((noinline)) T twice(T x) {
    return x + x;
}
template int twice<int>(int);

extern "C" {

/* Its own name, and those of others, strong and weak. */
int submission(int x);
int beside_time(void) {
    return 0;
}
__attribute__((weak)) int given_twice(int x) {
    return x + 1;
}

/* Refers to what it has itself, to what it was given, and to what it was not. */
static int kept_inside(int x) {
    return beside_secret(x) + given_once(x);
}
int submission(int x) {
    return kept_inside(x) + beside_time() + twice(x);
}
int submission_ladder = 1;

/* By another name, the same. */
int submission_write(void) {
    return 0;
}
__asm__(".symver submission_write, write@@GLIBC_2.2.5");
}

/* Weak, and still everybody's. */
__attribute__((weak)) void *operator new[](std::size_t, const std::nothrow_t &) noexcept {
    return nullptr;
}
