#include "common/device/cublas.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/simt/simt.h"

/* The part of cuBLAS's interface used here: the handle is opaque, all types and codes are ints. */
typedef void *cublas_handle;
enum { CUBLAS_OK = 0, OP_PLAIN = 0, OP_TRANSPOSED = 1, DEFAULT_MATH = 0 };
enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 14, COMPUTE_F32 = 68, ALGORITHM_DEFAULT = -1 };
enum { MAJOR, MINOR, PATCH, VERSION_PARTS };

typedef int create_function(cublas_handle *handle);
typedef int destroy_function(cublas_handle handle);
typedef int property_function(int part, int *value);
typedef int mode_function(cublas_handle handle, int mode);
typedef int stream_function(cublas_handle handle, device_stream stream);
typedef int workspace_function(cublas_handle handle, void *memory, size_t bytes);
typedef const char *text_function(int status);
typedef int sgemm_function(cublas_handle handle, int op_a, int op_b, int m, int n, int k,
                           const float *alpha, const float *a, int lda, const float *b, int ldb,
                           const float *beta, float *c, int ldc);
typedef int gemm_ex_function(cublas_handle handle, int op_a, int op_b, int m, int n, int k,
                             const void *alpha, const void *a, int type_a, int lda, const void *b,
                             int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                             int compute, int algorithm);

struct cublas {
    void *library;
    cublas_handle handle;
    create_function *create;
    destroy_function *destroy;
    property_function *property;
    mode_function *set_math_mode;
    stream_function *set_stream;
    workspace_function *set_workspace;
    text_function *text; /* NULL in old versions */
    sgemm_function *sgemm;
    gemm_ex_function *gemm_ex; /* NULL in very old versions */
    /* As last set. Setting a stream resets the workspace. */
    bool configured;
    device_stream stream;
    void *workspace;
    size_t workspace_bytes;
};

static enum status open_library(struct cublas *cublas, struct error *error) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    const char *file = getenv("WARPBOOK_CUBLAS");
    if (file != NULL && file[0] != '\0') {
        cublas->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (cublas->library == NULL) {
            return error_set(error, STATUS_NOT_FOUND, "cuBLAS of $WARPBOOK_CUBLAS: %s", dlerror());
        }
        return STATUS_OK;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && cublas->library == NULL; i++) {
        cublas->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (cublas->library == NULL) {
        return error_set(error, STATUS_NOT_FOUND,
                         "cuBLAS is not installed (no libcublas.so.13, .12 or .11 on the loader's "
                         "path); name the file in $WARPBOOK_CUBLAS to compare with it");
    }
    return STATUS_OK;
}

/* Looks up one function. POSIX allows a function's address in an object pointer. */
static void find(struct cublas *cublas, void *function, const char *name, const char **missing) {
    *(void **)function = dlsym(cublas->library, name);
    if (*(void **)function == NULL && *missing == NULL) {
        *missing = name;
    }
}

static enum status find_functions(struct cublas *cublas, struct error *error) {
    const char *missing = NULL, *optional = NULL;
    find(cublas, &cublas->create, "cublasCreate_v2", &missing);
    find(cublas, &cublas->destroy, "cublasDestroy_v2", &missing);
    find(cublas, &cublas->property, "cublasGetProperty", &missing);
    find(cublas, &cublas->set_math_mode, "cublasSetMathMode", &missing);
    find(cublas, &cublas->set_stream, "cublasSetStream_v2", &missing);
    find(cublas, &cublas->set_workspace, "cublasSetWorkspace_v2", &missing);
    find(cublas, &cublas->sgemm, "cublasSgemm_v2", &missing);
    find(cublas, &cublas->text, "cublasGetStatusString", &optional);
    find(cublas, &cublas->gemm_ex, "cublasGemmEx", &optional);
    if (missing != NULL) {
        return error_set(error, STATUS_NOT_FOUND, "the library opened as cuBLAS has no %s",
                         missing);
    }
    return STATUS_OK;
}

static enum status report(const struct cublas *cublas, int status, const char *what,
                          struct error *error) {
    if (status == CUBLAS_OK) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_DEVICE, "%s: %s (cuBLAS status %d)", what,
                     cublas->text != NULL ? cublas->text(status) : "failed", status);
}

static enum status start(struct cublas *cublas, struct error *error) {
    TRY(open_library(cublas, error));
    TRY(find_functions(cublas, error));
    TRY(report(cublas, cublas->create(&cublas->handle), "starting cuBLAS", error));
    int code = cublas->set_math_mode(cublas->handle, DEFAULT_MATH);
    return report(cublas, code, "setting cuBLAS to fp32", error);
}

enum status cublas_open(struct cublas **cublas, struct error *error) {
    struct simt_api simt;
    *cublas = NULL;
    if (simt_find(&simt)) {
        return error_set(error, STATUS_NOT_FOUND, "cuBLAS does not run on simt: it needs a GPU");
    }
    struct cublas *opened = calloc(1, sizeof *opened);
    if (opened == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for cuBLAS");
    }
    enum status status = start(opened, error);
    if (status != STATUS_OK) {
        cublas_close(opened);
        return status;
    }
    *cublas = opened;
    return STATUS_OK;
}

void cublas_close(struct cublas *cublas) {
    if (cublas == NULL) {
        return;
    }
    if (cublas->handle != NULL) {
        cublas->destroy(cublas->handle);
    }
    if (cublas->library != NULL) {
        dlclose(cublas->library);
    }
    free(cublas);
}

const char *cublas_name(const struct cublas *cublas, char *name, size_t size) {
    int version[VERSION_PARTS] = {0};
    for (int part = MAJOR; part < VERSION_PARTS; part++) {
        if (cublas->property(part, &version[part]) != CUBLAS_OK) {
            snprintf(name, size, "cuBLAS");
            return name;
        }
    }
    snprintf(name, size, "cuBLAS %d.%d.%d", version[MAJOR], version[MINOR], version[PATCH]);
    return name;
}

/* Sets stream and workspace if they differ from the last call's. */
static enum status configure(struct cublas *cublas, void *workspace, size_t bytes,
                             device_stream stream, struct error *error) {
    if (cublas->configured && cublas->stream == stream && cublas->workspace == workspace &&
        cublas->workspace_bytes == bytes) {
        return STATUS_OK;
    }
    cublas->configured = false;
    int code = cublas->set_stream(cublas->handle, stream);
    if (code == CUBLAS_OK && workspace != NULL) {
        code = cublas->set_workspace(cublas->handle, workspace, bytes);
    }
    cublas->configured = code == CUBLAS_OK;
    cublas->stream = stream;
    cublas->workspace = workspace;
    cublas->workspace_bytes = bytes;
    return report(cublas, code, "giving cuBLAS its stream and workspace", error);
}

static enum status check_sizes(size_t M, size_t N, size_t K, struct error *error) {
    if (M > INT_MAX || N > INT_MAX || K > INT_MAX) {
        return error_set(error, STATUS_OVERFLOW, "%zu x %zu x %zu is beyond cuBLAS's 32-bit sizes",
                         M, N, K);
    }
    return STATUS_OK;
}

enum status cublas_sgemm(struct cublas *cublas, const struct cublas_problem *p, void *workspace,
                         size_t workspace_bytes, device_stream stream, struct error *error) {
    TRY(check_sizes(p->M, p->N, p->K, error));
    if (p->M == 0 || p->N == 0) {
        return STATUS_OK;
    }
    TRY(configure(cublas, workspace, workspace_bytes, stream, error));
    /*
     * cuBLAS's matrices are column-major, and a row-major matrix read that way is its
     * transpose: C^T (N, M) = B^T (N, K) * A^T (K, M), with the operands swapped.
     */
    int m = (int)p->N, n = (int)p->M, k = (int)p->K;
    int lda = k > 0 ? k : 1;
    int ldb = p->b_transposed ? lda : m;
    int code = cublas->sgemm(cublas->handle, p->b_transposed ? OP_TRANSPOSED : OP_PLAIN, OP_PLAIN,
                             m, n, k, &p->alpha, p->B, ldb, p->A, lda, &p->beta, p->C, m);
    return report(cublas, code, "cublasSgemm", error);
}

static int type_of(enum nn_dtype dtype) {
    return dtype == NN_F16 ? TYPE_F16 : dtype == NN_BF16 ? TYPE_BF16 : TYPE_F32;
}

enum status cublas_gemm16(struct cublas *cublas, const struct cublas_gemm16 *p, void *workspace,
                          size_t workspace_bytes, device_stream stream, struct error *error) {
    TRY(check_sizes(p->M, p->N, p->K, error));
    if (p->M == 0 || p->N == 0) {
        return STATUS_OK;
    }
    if (p->dtype == NN_F32 || (p->out_dtype != p->dtype && p->out_dtype != NN_F32)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "cublas_gemm16 multiplies fp16 or bf16; the result has that type or fp32");
    }
    if (cublas->gemm_ex == NULL) {
        return error_set(error, STATUS_UNSUPPORTED, "this cuBLAS has no cublasGemmEx");
    }
    TRY(configure(cublas, workspace, workspace_bytes, stream, error));
    const float alpha = 1.0f, beta = p->add ? 1.0f : 0.0f;
    int m = (int)p->N, n = (int)p->M, k = (int)p->K, ld = k > 0 ? k : 1; /* as above */
    int type = type_of(p->dtype);
    int code =
        cublas->gemm_ex(cublas->handle, p->b_transposed ? OP_PLAIN : OP_TRANSPOSED,
                        p->a_transposed ? OP_TRANSPOSED : OP_PLAIN, m, n, k, &alpha, p->B, type,
                        p->b_transposed ? m : ld, p->A, type, p->a_transposed ? n : ld, &beta, p->C,
                        type_of(p->out_dtype), m, COMPUTE_F32, ALGORITHM_DEFAULT);
    return report(cublas, code, "cublasGemmEx", error);
}
