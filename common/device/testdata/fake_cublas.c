/*
 * A library with cuBLAS's interface that computes on the host, with column-major matrices, and
 * keeps the state that cuBLAS keeps. Built as a shared library: cublas_test opens it.
 */
#include <stddef.h>
#include <stdlib.h>

/* The handle's state; one at a time. */
struct handle {
    int mode;
    const void *stream, *workspace;
};

enum { OK = 0, NOT_INITIALISED = 1, INVALID = 7, UNSET_MODE = -1 };

int cublasCreate_v2(void **handle) {
    if (getenv("FAKE_CUBLAS_FAILS") != NULL) {
        return NOT_INITIALISED;
    }
    struct handle *h = calloc(1, sizeof *h);
    *handle = h;
    if (h == NULL) {
        return INVALID;
    }
    h->mode = UNSET_MODE;
    return OK;
}

int cublasDestroy_v2(void *handle) {
    free(handle);
    return OK;
}

int cublasGetProperty(int part, int *value) {
    *value = 10 + part;
    return OK;
}

int cublasSetMathMode(void *handle, int mode) {
    ((struct handle *)handle)->mode = mode;
    return OK;
}

/* As in cuBLAS, setting a stream resets the workspace. */
int cublasSetStream_v2(void *handle, void *stream) {
    ((struct handle *)handle)->stream = stream;
    ((struct handle *)handle)->workspace = NULL;
    return OK;
}

int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes) {
    ((struct handle *)handle)->workspace = bytes > 0 ? workspace : NULL;
    return OK;
}

const char *cublasGetStatusString(int status) {
    return status == NOT_INITIALISED ? "the library was not initialized" : "an invalid value";
}

/* The test passes the address of a struct expectation as the stream; the call fills it. */
struct expectation {
    const void *workspace; /* seen at the call */
    int mode;
};

int cublasSgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                   int ldc) {
    struct handle *h = handle;
    int rows_a = op_a == 0 ? m : k, rows_b = op_b == 0 ? k : n;
    if (m < 0 || n < 0 || k < 0 || lda < (rows_a > 1 ? rows_a : 1) ||
        ldb < (rows_b > 1 ? rows_b : 1) || ldc < (m > 1 ? m : 1)) {
        return INVALID;
    }
    if (h->stream != NULL) {
        struct expectation *seen = (struct expectation *)(void *)h->stream;
        seen->workspace = h->workspace;
        seen->mode = h->mode;
    }
    for (int column = 0; column < n; column++) {
        for (int row = 0; row < m; row++) {
            double sum = 0.0;
            for (int i = 0; i < k; i++) {
                float left = op_a == 0 ? a[row + i * lda] : a[i + row * lda];
                float right = op_b == 0 ? b[i + column * ldb] : b[column + i * ldb];
                sum += (double)left * right;
            }
            float *to = &c[row + column * ldc];
            *to = (float)(*alpha * sum + (*beta == 0.0f ? 0.0 : (double)*beta * *to));
        }
    }
    return OK;
}

/* An element of a bf16 matrix. The test needs only fp32 results of bf16 matrices. */
static float bf16(const void *matrix, int i) {
    union {
        unsigned bits;
        float value;
    } x = {(unsigned)((const unsigned short *)matrix)[i] << 16};
    return x.value;
}

int cublasGemmEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                 const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                 const void *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
    enum { F32 = 0, BF16 = 14, COMPUTE_F32 = 68 };
    if (handle == NULL || type_a != BF16 || type_b != BF16 || type_c != F32 ||
        compute != COMPUTE_F32 || algorithm != -1 || lda < (op_a == 0 ? m : k) ||
        ldb < (op_b == 0 ? k : n) || ldc < m) {
        return INVALID;
    }
    for (int column = 0; column < n; column++) {
        for (int row = 0; row < m; row++) {
            double sum = 0.0;
            for (int i = 0; i < k; i++) {
                float left = bf16(a, op_a == 0 ? row + i * lda : i + row * lda);
                float right = bf16(b, op_b == 0 ? i + column * ldb : column + i * ldb);
                sum += (double)left * right;
            }
            float *to = &((float *)c)[row + column * ldc];
            double old = *(const float *)beta == 0.0f ? 0.0 : (double)*(const float *)beta * *to;
            *to = (float)(*(const float *)alpha * sum + old);
        }
    }
    return OK;
}
