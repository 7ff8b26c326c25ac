#include "common/bench/openblas.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/cpu.h"

/* The names are those of kernels with vectors of at most four floats. OpenBLAS falls back to them
   on a CPU that is newer than the library. */
bool openblas_is_outdated(const char *core, size_t vector_floats) {
    static const char *const names[] = {"Prescott", "Core2",  "Penryn",  "Dunnington",
                                        "Nehalem",  "Atom",   "Opteron", "Barcelona",
                                        "Bobcat",   "Generic"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (vector_floats > 4 && strncasecmp(core, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

#ifndef WARPBOOK_NO_OPENBLAS

#include <cblas.h>

bool openblas_available(void) {
    return true;
}

const char *openblas_name(char *name, size_t size) {
    /* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...": the first two words. */
    const char *text = openblas_get_config();
    size_t length = strcspn(text, " ");
    if (text[length] == ' ') {
        length += 1 + strcspn(text + length + 1, " ");
    }
    snprintf(name, size, "%.*s %s", (int)length, text, openblas_get_corename());
    return name;
}

const char *openblas_note(char *note, size_t size) {
    const char *kernels = getenv("OPENBLAS_CORETYPE");
    const char *cache = getenv("OPENBLAS_L2_SIZE");
    if (kernels != NULL && kernels[0] != '\0') {
        snprintf(note, size,
                 "OPENBLAS_CORETYPE makes OpenBLAS use its %s kernels; unset it%s to compare with "
                 "OpenBLAS's own choice",
                 openblas_get_corename(), cache != NULL ? " and OPENBLAS_L2_SIZE" : "");
        return note;
    }
    if (cache != NULL && cache[0] != '\0') {
        snprintf(note, size,
                 "OpenBLAS takes the size of the L2 cache from OPENBLAS_L2_SIZE; unset it to "
                 "compare with OpenBLAS's own choice");
        return note;
    }
    if (openblas_is_outdated(openblas_get_corename(), cpu_vector_floats())) {
        snprintf(note, size,
                 "OpenBLAS does not know this CPU and uses its %s kernels; set "
                 "OPENBLAS_CORETYPE=%s for a fairer comparison",
                 openblas_get_corename(), cpu_vector_floats() >= 16 ? "SkylakeX" : "Haswell");
        return note;
    }
    return NULL;
}

enum status openblas_matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                            size_t K, int threads) {
    if (M > INT_MAX || N > INT_MAX || K > INT_MAX) {
        return STATUS_OVERFLOW;
    }
    openblas_set_num_threads(threads);
    if (M == 1 && N > 0 && K > 0) {
        cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)N, (int)K, 1.0f, weight, (int)K, in, 1, 0.0f,
                    out, 1);
        return STATUS_OK;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)M, (int)N, (int)K, 1.0f, in,
                K > 0 ? (int)K : 1, weight, K > 0 ? (int)K : 1, 0.0f, out, N > 0 ? (int)N : 1);
    return STATUS_OK;
}

#else

bool openblas_available(void) {
    return false;
}

const char *openblas_name(char *name, size_t size) {
    snprintf(name, size, "OpenBLAS (not installed)");
    return name;
}

const char *openblas_note(char *note, size_t size) {
    (void)note, (void)size;
    return NULL;
}

enum status openblas_matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                            size_t K, int threads) {
    (void)out, (void)in, (void)weight, (void)M, (void)N, (void)K, (void)threads;
    return STATUS_UNSUPPORTED;
}

#endif
