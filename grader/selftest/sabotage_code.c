/*
 * Submissions to lab 01 that would have other code do the work: a library, or code that their
 * compiler never saw. $WRONG_CODE names one. Each computes the right result, so that nothing but
 * the trick itself can be what is wrong with it.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "grader/isolation/message.h"
#include "labs/01_cpu_matmul/matmul.h"

#define MISTAKES(X)                                                                   \
    X(right)                                                                          \
    X(copied_library)   /* copies one into its folder, and loads that */              \
    X(kept_library)     /* the same, and takes it out again before it answers */      \
    X(found_library)    /* finds dlopen() in the C library's table of symbols */      \
    X(memory_file)      /* a file in memory, for code */                              \
    X(arena)            /* maps what it shares with the grader as code */             \
    X(arena_by_race)    /* the same, while a thread changes what the number means */  \
    X(arena_late)       /* the same, when it has answered */                          \
    X(generated)        /* writes code into memory that may be run */                 \
    X(protected)        /* lets data be run */                                        \
    X(protected_early)  /* the same before main() */                                  \
    X(readable_is_code) /* has the kernel make all that can be read executable */     \
    X(zero_device)      /* maps a device as code */                                   \
    X(own_text)         /* writes into its own code through /proc */                  \
    X(runs_data)        /* jumps to an array */                                       \
    X(reads)            /* looks for files: libraries, users, solutions, this test */ \
    X(wakes_itself)     /* a timer, to go on while it is to stand still */

#define MISTAKE_VARIABLE "WRONG_CODE"
#include "grader/selftest/mistakes.h"

/* x86's "return"; on other CPUs an instruction that does not matter: nobody gets so far. */
static unsigned char data_of_code[8192] = {0xc3};

static void *page_of_data(void) {
    return (void *)(((uintptr_t)data_of_code + 4095) & ~(uintptr_t)4095);
}

/* @return whether it stood: whether nothing stopped the trick */
static bool fail_if(bool stood, const char *what) {
    if (stood) {
        printf("nothing stopped it: %s\n", what);
    }
    return stood;
}

/* Copies the mathematics library, which it may read, to ./mine.so. */
static bool copy_library(void) {
    Dl_info info;
    static char bytes[1 << 16];
    ssize_t got = 0;
    double (*volatile known)(double) = cos;
    int from = dladdr((void *)(uintptr_t)known, &info) != 0 ? open(info.dli_fname, O_RDONLY) : -1;
    int to = open("mine.so", O_WRONLY | O_CREAT, 0600);
    while (from >= 0 && to >= 0 && (got = read(from, bytes, sizeof bytes)) > 0) {
        got = write(to, bytes, (size_t)got);
    }
    return from >= 0 && to >= 0 && got == 0;
}

static void load_copy(bool keep) {
    void *library = copy_library() ? dlopen("./mine.so", RTLD_NOW) : NULL;
    fail_if(library != NULL, "a library of its own");
    if (library != NULL && !keep) {
        dlclose(library);
    }
}

/* A symbol of the library that `inside` belongs to, by its own table. */
static void *find_symbol(uintptr_t inside, const char *name) {
    const char *base = (const char *)(inside & ~(uintptr_t)4095);
    while (memcmp(base, ELFMAG, SELFMAG) != 0) {
        base -= 4096;
    }
    const Elf64_Ehdr *header = (const void *)base;
    const Elf64_Phdr *part = (const void *)(base + header->e_phoff);
    const Elf64_Dyn *d = NULL;
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    for (int i = 0; i < header->e_phnum; i++) {
        d = part[i].p_type == PT_DYNAMIC ? (const void *)(base + part[i].p_vaddr) : d;
    }
    for (; d->d_tag != DT_NULL; d++) {
        symbols = d->d_tag == DT_SYMTAB ? (const void *)(uintptr_t)d->d_un.d_ptr : symbols;
        strings = d->d_tag == DT_STRTAB ? (const void *)(uintptr_t)d->d_un.d_ptr : strings;
    }
    for (const Elf64_Sym *s = symbols; (const char *)s < strings; s++) {
        if (s->st_shndx != SHN_UNDEF && strcmp(strings + s->st_name, name) == 0) {
            return (void *)(uintptr_t)(base + s->st_value);
        }
    }
    return NULL;
}

/* No library but its own is to be found, whoever looks for it. */
static void find_library(void) {
    static const char *const names[] = {"libopenblas.so.0", "libblas.so.3", "libstdc++.so.6",
                                        "libcrypto.so.3", "libz.so.1"};
    typedef void *open_function(const char *, int);
    open_function *open_library =
        (open_function *)(uintptr_t)find_symbol((uintptr_t)printf, "dlopen");
    bool found = open_library == NULL;
    for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++) {
        found = fail_if(open_library(names[i], RTLD_NOW) != NULL, names[i]);
    }
    puts(found ? "" : "no library was found");
}

static void map_code(int fd, const char *what) {
    fail_if(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED, what);
}

enum { CHANGING = 50 };

static void *change_number(void *unused) {
    int own = open("/proc/self/exe", O_RDONLY);
    for (;;) {
        dup2(own, CHANGING);
        dup2(WORKER_ARENA, CHANGING);
    }
    return unused;
}

/* Tries until the kernel has looked at the one and mapped the other. */
static void map_by_race(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, change_number, NULL);
    for (int i = 0; i < 1000; i++) {
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, CHANGING, 0);
    }
    fail_if(true, "a thousand races");
}

static void *map_late(void *unused) {
    const struct timespec soon = {0, 2000000};
    nanosleep(&soon, NULL);
    map_code(WORKER_ARENA, "the arena, late");
    return unused;
}

static void start_late(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, map_late, NULL);
}

static void read_files(void) {
    static const char *const paths[] = {"/etc/passwd",
                                        "/etc/hostname",
                                        "/usr/lib/os-release",
                                        "/usr/lib",
                                        "/usr/lib/x86_64-linux-gnu",
                                        "/usr/lib/x86_64-linux-gnu/libopenblas.so.0",
                                        "/usr/bin/env",
                                        "/proc/1/environ",
                                        "/proc/self/../1/maps",
                                        "/tmp",
                                        "../..",
                                        "/proc/self/root/etc/passwd",
                                        "/proc/self/cwd/../../etc/passwd"};
    bool found = false;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        found |= fail_if(open(paths[i], O_RDONLY) >= 0, paths[i]);
    }
    puts(found ? "" : "there is nothing to be read");
}

static void start_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
    int timer;
    fail_if(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0, "a timer");
}

static void write_text(void) {
    bool stood = fail_if(open("/proc/self/mem", O_RDWR) >= 0, "its own memory as a file");
    puts(stood ? "" : "the memory is no file to be written");
}

static void protect_data(void) {
    fail_if(mprotect(page_of_data(), 4096, PROT_READ | PROT_EXEC) == 0, "data as code");
}

static void load_and_keep(void) {
    load_copy(true);
}

static void load_for_a_while(void) {
    load_copy(false);
}

static void make_memory_file(void) {
    fail_if(memfd_create("code", 0) >= 0, "a file in memory");
}

static void map_arena(void) {
    map_code(WORKER_ARENA, "the arena");
}

static void make_memory_for_code(void) {
    fail_if(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                 0) != MAP_FAILED,
            "memory for code");
}

static void change_personality(void) {
    fail_if(personality(READ_IMPLIES_EXEC) != -1, "another personality");
}

static void map_device(void) {
    map_code(open("/dev/zero", O_RDONLY), "a device");
}

static void run_data(void) {
    ((void (*)(void))(uintptr_t)page_of_data())();
}

/* What each does in the process's first call, behind what it was asked for. */
static void (*const tricks[])(void) = {
    [MISTAKE_copied_library] = load_and_keep,
    [MISTAKE_kept_library] = load_for_a_while,
    [MISTAKE_found_library] = find_library,
    [MISTAKE_memory_file] = make_memory_file,
    [MISTAKE_arena] = map_arena,
    [MISTAKE_arena_by_race] = map_by_race,
    [MISTAKE_arena_late] = start_late,
    [MISTAKE_generated] = make_memory_for_code,
    [MISTAKE_protected] = protect_data,
    [MISTAKE_readable_is_code] = change_personality,
    [MISTAKE_zero_device] = map_device,
    [MISTAKE_own_text] = write_text,
    [MISTAKE_runs_data] = run_data,
    [MISTAKE_reads] = read_files,
    [MISTAKE_wakes_itself] = start_timer,
};

static void play(enum mistake mistake) {
    if (mistake < sizeof tricks / sizeof *tricks && tricks[mistake] != NULL) {
        tricks[mistake]();
    }
}

__attribute__((constructor)) static void begin(void) {
    if (chosen_mistake() == MISTAKE_protected_early) {
        protect_data();
    }
}

enum status cpu_matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                       size_t K, int threads) {
    static bool played;
    (void)threads;
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (size_t k = 0; k < K; k++) {
                sum += in[m * K + k] * weight[n * K + k];
            }
            out[m * N + n] = sum;
        }
    }
    if (!played) {
        played = true;
        play(chosen_mistake());
    }
    return STATUS_OK;
}
