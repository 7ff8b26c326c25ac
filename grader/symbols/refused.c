/* Names that are refused with a reason of their own; any other is refused for not being listed. */
#include <stddef.h>

#include "grader/symbols/tables.h"

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
     "[sdcz]gemm_ [sdcz]gemv_ openblas_* goto_*",
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
     "truncate* ftruncate* file_read file_write file_view_* file_enter_* flags_* mkstemp* tmpfile* "
     "chdir getcwd realpath _ZNSt*fstream* "
     "_ZNSt*basic_filebuf* _ZNSt10filesystem*",
     "a submission may not read or write files; printf writes to the test's output"},
    {"clock clock_* time gettimeofday ftime times getrusage nanosleep usleep sleep thrd_sleep "
     "timespec_get omp_get_wtime omp_get_wtick device_now _ZNSt6chrono*",
     "only the grader's clock counts; choose by shapes and by the GPU's properties"},
    {"exit _exit _Exit quick_exit pthread_exit thrd_exit at_quick_exit __cxa_at_quick_exit "
     "on_exit",
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
