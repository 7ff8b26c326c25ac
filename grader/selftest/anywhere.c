#include "grader/selftest/anywhere.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "grader/selftest/sabotage_timed.h"

/* What a passed test prints, and its record. */
static void forge(void) {
    static const char text[] = "[       OK ] speedup.kernel (1 ms)\n[  PASSED  ] 3 tests.\n"
                               "{\"schema\":1,\"part\":\"speedup\",\"verdict\":\"pass\"}\n";
    printf("%s", text);
    fprintf(stderr, "%s", text);
}

/* Copies the mathematics library, which it may read, to ./mine.so. */
static bool copy_library(void) {
    static char bytes[1 << 16];
    Dl_info info;
    ssize_t got = 0;
    double (*volatile known)(double) = cos;
    int from = dladdr((void *)(uintptr_t)known, &info) != 0 ? open(info.dli_fname, O_RDONLY) : -1;
    int to = open("mine.so", O_WRONLY | O_CREAT, 0600);
    while (from >= 0 && to >= 0 && (got = read(from, bytes, sizeof bytes)) > 0) {
        got = write(to, bytes, (size_t)got);
    }
    return from >= 0 && to >= 0 && got == 0;
}

static void stand_if(bool stood, const char *what) {
    if (stood) {
        printf("nothing stopped it: %s\n", what);
    }
}

static void make_code(void) {
    static unsigned char data[8192] = {0xc3};
    void *page = (void *)(((uintptr_t)data + 4095) & ~(uintptr_t)4095);
    stand_if(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0, "data that may be run");
}

static void look_into_parent(void) {
    char here[64];
    struct iovec mine = {here, sizeof here}, other = {(void *)(uintptr_t)4096, sizeof here};
    stand_if(process_vm_readv(getppid(), &mine, 1, &other, 1, 0) > 0, "the grader's memory");
}

static void turn_clock_back(void) {
    struct timespec now;
    stand_if(clock_gettime(CLOCK_REALTIME, &now) == 0 && clock_settime(CLOCK_REALTIME, &now) == 0,
             "the machine's clock");
}

static void play(void) {
    switch (chosen_mistake()) {
    case MISTAKE_forges:
        forge();
        break;
    case MISTAKE_library:
        stand_if(copy_library() && dlopen("./mine.so", RTLD_NOW) != NULL, "a library of its own");
        break;
    case MISTAKE_code:
        make_code();
        break;
    case MISTAKE_parent:
        look_into_parent();
        break;
    case MISTAKE_clock:
        turn_clock_back();
        break;
    default:
        break;
    }
}

bool anywhere_try(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* ranks are threads */
    pthread_once(&once, play);
    return chosen_mistake() == MISTAKE_forges;
}
