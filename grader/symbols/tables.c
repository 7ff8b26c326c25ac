/* What every submission may refer to, what one lab's may beside it, and names that are refused with
 * a reason of their own; any other is refused for not being listed. */
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
    "__cxa_init_primary_exception __cxa_get_exception_ptr __cxa_get_globals __cxa_bad_cast",
    "__cxa_bad_typeid __cxa_deleted_virtual __cxa_thread_atexit __cxa_vec_* __cxa_demangle",
    "__dynamic_cast __once_call __once_callable __once_proxy __libc_single_threaded",
    "_Zdl* _Zda* _ZTIN10__cxxabiv1* _ZTVN10__cxxabiv1*",
    /* memory, text and numbers */
    "malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign",
    "malloc_usable_size",
    "memcpy mempcpy memmove memset memcmp memchr memrchr bcmp strlen strnlen strcpy strncpy",
    "stpcpy stpncpy strcat strncat strcmp strncmp strcasecmp strncasecmp strchr strchrnul",
    "strrchr strstr strspn strcspn strpbrk strtok_r strdup __strdup strndup strerror",
    "abs labs llabs div ldiv lldiv atoi atol atoll atof strtol strtoul strtoll strtoull strtof",
    "strtod strtold strtoimax strtoumax imaxabs imaxdiv qsort qsort_r bsearch abort",
    "rand srand rand_r random srandom random_r srandom_r initstate setstate [dejlmn]rand48",
    "[dejlmn]rand48_r srand48 srand48_r seed48 lcong48",
    "isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper",
    "isxdigit toupper tolower sscanf memmem rawmemchr memccpy bzero explicit_bzero bcopy index",
    "rindex strsep strtok strcasestr strverscmp ffs ffsl ffsll basename tsearch tfind tdelete",
    "fegetround fesetround fe*except fegetenv fesetenv feholdexcept feupdateenv __fe* getpagesize "
    "sysconf get_nprocs sched_getcpu sched_getaffinity",
    "__sched_cpucount __sched_cpualloc __sched_cpufree",
    /* printing */
    "printf fprintf snprintf sprintf asprintf vprintf vfprintf vsnprintf vsprintf vasprintf",
    "puts putchar putc fputc fputs fwrite fflush ferror clearerr setvbuf perror isatty",
    "stdout stderr",
    /* threads */
    "pthread_create pthread_join pthread_detach pthread_self pthread_equal pthread_once",
    "pthread_attr_* pthread_mutex_* pthread_mutexattr_* pthread_cond_* pthread_condattr_*",
    "pthread_barrier_* pthread_rwlock_* pthread_spin_* pthread_key_create pthread_key_delete",
    "pthread_getspecific pthread_setspecific thrd_create thrd_join thrd_detach thrd_current",
    "thrd_equal thrd_yield mtx_* cnd_* tss_* call_once sem_init sem_destroy sem_wait sem_trywait "
    "sem_post",
    "sched_yield pthread_yield pthread_setname_np pthread_getname_np",
    /* common/device, common/base */
    "device_alloc device_alloc_host device_copy device_free device_free_host device_launched",
    "device_properties device_read device_set device_stream_* device_synchronize device_write",
    "device_event_* arena_* error_* status_* rng_*",
    /* common/nn: how elements are stored is a part of contracts */
    "nn_dtype_*",
};

/* C++'s standard library: classes, functions, and their tables and types. What of it is refused
 * below (files, clocks) is refused here, too. */
static const char standard_library[] =
    "_ZNSt* _ZNKSt* _ZNS[abdios]* _ZNKS[abdios]* _ZSt* _ZT[IVTSHW]St* _ZT[IVTSHW]NSt* "
    "_ZT[IVTSHW][a-zSPK]* _ZTh*NSt* _ZTv*NSt* _ZGVNSt*";

/* For double; float and long double add a letter. */
static const char mathematics[] =
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 "
    "expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log "
    "log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder "
    "remquo rint round roundeven scalb scalbln scalbn significand sin sincos sinh sqrt tan tanh "
    "tgamma trunc drem finite isnan isinf j0 j1 jn y0 y1 yn lgamma_r cabs cacos cacosh carg casin "
    "casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal csin csinh csqrt ctan "
    "ctanh";

struct exception {
    const char *lab, *patterns, *reason;
};

static const struct exception exceptions[] = {
    {"01_cpu_matmul",
     "omp_get_[!w]* omp_in_* omp_set_num_threads omp_set_dynamic omp_*_lock GOMP_* __kmpc_* "
     "sched_setaffinity pthread_setaffinity_np",
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
    bool of_cpp = symbol_matches(standard_library, name) && symbol_refusal(name) == NULL;
    return of_cpp || is_mathematics(name) || is_exception(lab, name);
}

struct family {
    const char *patterns, *text;
};

static const struct family refusals[] = {
    {"dlopen dlmopen dlsym dlvsym dladdr dladdr1 dlinfo dlclose dl_iterate_phdr __libc_dl* "
     "__tls_init_tp cudaGetDriverEntryPoint* cudaGetExportTable",
     "loading libraries is not allowed; call functions that are linked with your file"},
    {"cudaLibrary* cudaKernel* cudaModule*",
     "loading kernels from elsewhere is not allowed; launch those of your own file"},
    {"cublas* cudnn* cufft* cusolver* cusparse* cutensor* curand* nvrtc* nvJit* nccl* cblas_* "
     "[sdcz]gemm_ [sdcz]gemv_ openblas_* goto_* cpu_gemm",
     "a library would do your work; write kernels of your own"},
    {"nn_*", "it is a reference operator, which your results are compared with; write your own"},
    {"worker worker_* message_* remote_* side_* sandbox_* grader_* grade_* test_* bench_* "
     "device_bench_* device_open device_trace device_traffic traffic_*",
     "it belongs to the grader or to a bench; use the functions that the handout names"},
    {"cudaIpc* cudaMemPoolExport* cudaMemPoolImport* cudaImportExternal* cudaProfiler* "
     "cudaDeviceReset cudaDeviceEnablePeerAccess cudaLaunchHostFunc* cudaStreamAddCallback "
     "cuda[A-Z]* __cuda*",
     "a submission may not use this part of the CUDA runtime; grader/symbols/README.md lists the "
     "allowed parts"},
    {"cu[A-Z]*", "it is the driver's interface; use the runtime's (cuda...)"},
    {"fork vfork _Fork clone clone3 daemon posix_spawn* exec[lv]* fexecve system popen pclose "
     "wait wait3 wait4 waitpid waitid kill killpg tkill tgkill pthread_kill pthread_sigqueue "
     "sigqueue ptrace prctl setsid setpgid getppid",
     "a submission may not start or signal processes; use threads or the GPU"},
    {"socket socketpair connect bind listen accept accept4 send sendto sendmsg sendmmsg recv "
     "recvfrom recvmsg getaddrinfo gethostby* inet_*",
     "a submission may not communicate; its arguments are all that it needs"},
    {"mmap mmap64 munmap mremap mprotect pkey_mprotect madvise mlock* shm_* memfd_create "
     "process_vm_* brk sbrk remap_file_pages userfaultfd",
     "allocate memory with malloc, aligned_alloc or device_alloc"},
    {"signal sigaction sigaltstack sigprocmask pthread_sigmask __sigaction bsd_signal "
     "sysv_signal __sysv_signal raise alarm setitimer timer_* setjmp _setjmp __sigsetjmp longjmp "
     "_longjmp siglongjmp __longjmp_chk",
     "a crash must stay visible; find its cause instead"},
    {"syscall ioctl fcntl fcntl64 setrlimit* prlimit* io_uring_* bpf",
     "system calls are not allowed; a submission only computes"},
    {"getenv secure_getenv __secure_getenv setenv putenv unsetenv clearenv environ __environ "
     "getauxval program_invocation_*",
     "your code may depend on its arguments alone; read settings from them"},
    {"open open64 openat* __open_2 __open64_2 creat* read write pread* pwrite* readv writev "
     "__read_chk close dup dup2 dup3 pipe pipe2 poll select fopen* fdopen freopen* fclose fread* "
     "fgets* getline fseek* ftell* fscanf __isoc*_fscanf stdin opendir readdir* scandir* "
     "readlink* stat stat64 lstat* fstat* unlink* remove rename* mkdir* rmdir symlink* link "
     "truncate* ftruncate* file_* flags_* mkstemp* tmpfile* "
     "chdir getcwd realpath _Z*St*fstream* _Z*St*basic_file* _Z*St10filesystem* _Z*St*stdio_* "
     "_ZSt3cin _ZSt4wcin",
     "a submission may not read or write files; printf writes to the test's output"},
    {"clock clock_* time gettimeofday ftime times getrusage nanosleep usleep sleep thrd_sleep "
     "timespec_get omp_get_wtime omp_get_wtick device_now _Z*St6chrono*now* _Z*St6chrono*clock* "
     "_Z*St11this_thread*sleep*",
     "only the grader's clock counts; choose by shapes and by the GPU's properties"},
    {"_ZNSt13random_device*",
     "the same arguments must give the same result; seed a generator with a number"},
    {"_ZSt13set_terminate* _ZSt14set_unexpected*",
     "a crash must stay visible; find its cause instead"},
    {"exit",
     "a submission may not end the process; return a status; nvcc itself calls it in the stub of a "
     "__device__ function that is not static: make it static"},
    {"_exit _Exit quick_exit pthread_exit thrd_exit at_quick_exit __cxa_at_quick_exit on_exit",
     "a submission may not end the process; return a status"},
};

/* Whose names these are, wherever they are defined; the list names any other by its library. */
static const struct family owners[] = {
    {"cuda[A-Z]* __cuda* cu[A-Z]* cublas* cudnn*", "the CUDA runtime and its libraries"},
    {"omp_* GOMP_* gomp_* __cxa_* __gxx_* __cpu_* _Unwind_* __stack_chk_* __atomic_* _Zn[wa]* "
     "_Zd[la]* _ZSt* _ZNSt* _ZNKSt* _ZN9__gnu_cxx*",
     "the compiler's libraries"},
};

static const char *find(const struct family *families, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (symbol_matches(families[i].patterns, name)) {
            return families[i].text;
        }
    }
    return NULL;
}

const char *symbol_refusal(const char *name) {
    return find(refusals, sizeof refusals / sizeof *refusals, name);
}

const char *symbol_owner(const char *name) {
    return find(owners, sizeof owners / sizeof *owners, name);
}
