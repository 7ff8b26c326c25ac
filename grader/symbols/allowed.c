/* What every submission may refer to, and what one lab's may beside it. */
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "grader/symbols/tables.h"

static const char *const allowed[] = {
    /* what nvcc puts into each file, and launches */
    "__cudaRegisterFatBinary __cudaRegisterFatBinaryEnd __cudaUnregisterFatBinary",
    "__cudaRegisterFunction __cudaRegisterVar __cudaRegisterManagedVar __cudaInitModule",
    "__cudaPushCallConfiguration __cudaPopCallConfiguration __cudaGetKernel __cudaLaunchKernel*",
    "cudaLaunchKernel cudaLaunchKernel_ptsz cudaLaunchKernelExC cudaLaunchKernelExC_ptsz",
    "cudaLaunchCooperativeKernel atexit",
    /* memory of the GPU, and copies */
    "cudaMalloc cudaMallocAsync cudaMallocFromPoolAsync cudaMallocHost cudaMallocManaged",
    "cudaMallocPitch cudaMalloc3D cudaFree cudaFreeAsync cudaFreeHost cudaHostAlloc",
    "cudaHostRegister cudaHostUnregister cudaHostGetDevicePointer cudaHostGetFlags",
    "cudaMemcpy cudaMemcpyAsync cudaMemcpy2D cudaMemcpy2DAsync cudaMemcpy3D cudaMemcpy3DAsync",
    "cudaMemcpyToSymbol cudaMemcpyToSymbolAsync cudaMemcpyFromSymbol cudaMemcpyFromSymbolAsync",
    "cudaMemset cudaMemsetAsync cudaMemset2D cudaMemset2DAsync cudaMemPrefetchAsync",
    "cudaMemAdvise cudaMemGetInfo cudaMemPoolCreate cudaMemPoolDestroy cudaMemPoolTrimTo",
    "cudaMemPoolSetAttribute cudaMemPoolGetAttribute cudaDeviceGetDefaultMemPool",
    "cudaDeviceGetMemPool cudaDeviceSetMemPool cudaPointerGetAttributes cudaGetSymbolAddress",
    "cudaGetSymbolSize cudaCreateTextureObject cudaDestroyTextureObject",
    /* streams, events, graphs */
    "cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority cudaStreamDestroy",
    "cudaStreamSynchronize cudaStreamQuery cudaStreamWaitEvent cudaStreamGet* cudaStreamSet*",
    "cudaStreamBeginCapture* cudaStreamEndCapture cudaStreamIsCapturing cudaStreamCopyAttributes",
    "cudaStreamUpdateCaptureDependencies* cudaThreadExchangeStreamCaptureMode",
    "cudaEventCreate cudaEventCreateWithFlags cudaEventDestroy cudaEventRecord",
    "cudaEventRecordWithFlags cudaEventSynchronize cudaEventQuery cudaEventElapsedTime*",
    "cudaGraphCreate cudaGraphDestroy cudaGraphClone cudaGraphInstantiate*",
    "cudaGraphLaunch cudaGraphUpload cudaGraphGet* cudaGraphNode* cudaGraphKernelNode*",
    "cudaGraphMemcpyNode* cudaGraphMemsetNode* cudaGraphExec* cudaGraphAddDependencies*",
    "cudaGraphAddEmptyNode cudaGraphAddKernelNode cudaGraphAddMemcpyNode*",
    "cudaGraphAddMemsetNode cudaGraphAddNode* cudaGraphAddChildGraphNode",
    "cudaGraphAddEventRecordNode cudaGraphAddEventWaitNode cudaGraphConditionalHandleCreate",
    /* what a kernel and a GPU can do */
    "cudaFuncSetAttribute cudaFuncGetAttributes cudaFuncSetCacheConfig cudaFuncGetName",
    "cudaOccupancy* cudaDeviceGetAttribute cudaDeviceGetLimit cudaDeviceSetLimit",
    "cudaDeviceGetStreamPriorityRange cudaDeviceSynchronize cudaGetDevice cudaSetDevice",
    "cudaGetDeviceCount cudaGetDeviceProperties* cudaCtxResetPersistingL2Cache",
    "cudaGetLastError cudaPeekAtLastError cudaGetErrorName cudaGetErrorString",
    "cudaRuntimeGetVersion cudaDriverGetVersion",
    /* what compilers call by themselves */
    "_GLOBAL_OFFSET_TABLE_ __dso_handle __stack_chk_fail __tls_get_addr __errno_location",
    "__cpu_model __cpu_indicator_init __cpu_features2 __assert_fail __ctype_*_loc",
    "__mem*_chk __str*_chk __stp*_chk __*printf_chk __isoc99_sscanf __isoc23_sscanf",
    "__isoc23_strto* __atomic_* __aarch64_* __extend* __trunc* __float* __fix*",
    "__add[dst]f3 __sub[dst]f3 __mul[dst]f3 __div[dst]f3 __mul[dst]c3 __div[dst]c3 __powi[dst]f2 "
    "__divti3",
    "__udivti3 __umodti3 __modti3 __multi3 __popcount[dt]i2 __clz[dt]i2 __ctz[dt]i2",
    "__isnan* __isinf* __finite* __fpclassify* __signbit* __isoc23_ato* _ZGV*",
    /* the same with sanitizers, which lab 01's handout asks to look for a mistake */
    "__asan_* __ubsan_handle_*",
    /* and those of C++, nvcc's language on the host */
    "__gxx_personality_v0 _Unwind_Resume __cxa_guard_* __cxa_atexit __cxa_begin_catch",
    "__cxa_end_catch __cxa_rethrow __cxa_throw __cxa_allocate_exception __cxa_free_exception",
    "__cxa_throw_bad_array_new_length __cxa_pure_virtual __cxa_call_unexpected _Znw* _Zna*",
    "_Zdl* _Zda* _ZTI* _ZTS* _ZTVN10__cxxabiv1* _ZSt*__throw_* _ZSt9terminatev _ZSt7nothrow",
    "_ZNSt7__cxx1112basic_string* _ZNKSt7__cxx1112basic_string* _ZNSt6vector* _ZNKSt6vector*",
    "_ZNSt9exceptionD* _ZNSt9bad_allocD* _ZNSt12length_error* _ZSt18_Rb_tree_*",
    "_ZSt28_Rb_tree_* _ZSt29_Rb_tree_* _ZNSt8__detail15_List_node_base* _ZNSt8ios_base4Init*",
    "_ZSt21ios_base_library_initv _ZSt4cout _ZSt4cerr _ZSt16__ostream_insert* _ZSt4endl*",
    "_ZSt5flush* _ZStls* _ZNSo*",
    /* memory, text and numbers */
    "malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign",
    "memcpy mempcpy memmove memset memcmp memchr memrchr bcmp strlen strnlen strcpy strncpy",
    "stpcpy stpncpy strcat strncat strcmp strncmp strcasecmp strncasecmp strchr strchrnul",
    "strrchr strstr strspn strcspn strpbrk strtok_r strdup __strdup strndup strerror",
    "abs labs llabs div ldiv lldiv atoi atol atoll atof strtol strtoul strtoll strtoull strtof",
    "strtod strtold qsort qsort_r bsearch rand srand rand_r random srandom abort",
    "isalnum isalpha isdigit isspace isxdigit toupper tolower sscanf",
    /* printing */
    "printf fprintf snprintf sprintf vprintf vfprintf vsnprintf puts putchar putc fputc fputs",
    "fwrite fflush perror stdout stderr",
    /* threads */
    "pthread_create pthread_join pthread_detach pthread_self pthread_equal pthread_once",
    "pthread_attr_* pthread_mutex_* pthread_mutexattr_* pthread_cond_* pthread_condattr_*",
    "pthread_barrier_* pthread_rwlock_* pthread_spin_* pthread_key_create pthread_key_delete",
    "pthread_getspecific pthread_setspecific thrd_create thrd_join thrd_yield mtx_* cnd_* tss_*",
    "call_once sem_init sem_destroy sem_wait sem_trywait sem_post sched_yield",
    /* common/device, common/base */
    "device_alloc device_alloc_host device_copy device_free device_free_host device_launched",
    "device_properties device_read device_set device_stream_* device_synchronize device_write",
    "device_event_* arena_* error_* status_* rng_*",
    /* common/nn: how elements are stored is a part of contracts */
    "nn_dtype_*",
};

/* For double; float and long double add a letter. */
static const char mathematics[] =
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 "
    "expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log "
    "log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder "
    "remquo rint round roundeven scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc";

struct exception {
    const char *lab, *patterns, *reason;
};

static const struct exception exceptions[] = {
    {"01_cpu_matmul",
     "omp_get_[!w]* omp_in_* omp_set_num_threads omp_set_dynamic omp_*_lock GOMP_* __kmpc_* "
     "sysconf get_nprocs sched_getcpu sched_getaffinity sched_setaffinity pthread_setaffinity_np",
     "spreading rows over the CPU's threads is what it teaches; its code is compiled for OpenMP"},
};

bool symbol_matches(const char *patterns, const char *name) {
    char pattern[128];
    while (*patterns != '\0') {
        size_t length = strcspn(patterns, " ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, patterns);
        if (fnmatch(pattern, name, 0) == 0) {
            return true;
        }
        patterns += length;
        patterns += strspn(patterns, " ");
    }
    return false;
}

static bool is_mathematics(const char *name) {
    char base[64];
    size_t length = strlen(name);
    if (length == 0 || length >= sizeof base) {
        return false;
    }
    snprintf(base, sizeof base, "%s", name);
    bool suffix = base[length - 1] == 'f' || base[length - 1] == 'l';
    bool whole = symbol_matches(mathematics, base);
    base[length - 1] = '\0';
    return whole || (suffix && symbol_matches(mathematics, base));
}

static bool is_exception(const char *lab, const char *name) {
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        if (strcmp(exceptions[i].lab, lab) == 0 && symbol_matches(exceptions[i].patterns, name)) {
            return true;
        }
    }
    return false;
}

bool symbol_listed(const char *lab, const char *name) {
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (symbol_matches(allowed[i], name)) {
            return true;
        }
    }
    return is_mathematics(name) || is_exception(lab, name);
}
