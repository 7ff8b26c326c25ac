#define SIMT_CLIENT /* see names.h */

#include "common/simt/runtime/remote/client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/simt/memory/space/host_fault.h"
#include "common/simt/runtime/error/error_exit.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/remote/device_process.h"
#include "common/simt/runtime/remote/foreseen.h"
#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/state.h"

enum { NO_SOCKET = -1 };

/** A kernel's layout, asked for once. */
struct known_layout {
    const void *function;
    struct simt_kernel_layout layout;
    struct known_layout *next;
};

/** What a library keeps for the program: names, arguments of nodes. */
struct kept {
    struct kept *next;
    char bytes[];
};

/** A way to a device process. */
struct connection {
    int socket;
    bool lost;
    bool restricted; /**< a controller's: the device gets nothing but what a copy names */
    uint64_t window, window_bytes; /**< of device memory */
    uint64_t program_calls;        /**< a controller's: that the last answer told */
    struct foreseen *foreseen;     /**< NULL: every call is asked */
    cudaError_t posted;            /**< of a call that was not asked; the next one returns it */
    time_t patience;               /**< seconds for an answer, where it is restricted */
    struct connection *next;
};

/** Host memory that a call lets the device read or write. */
struct span {
    const void *memory;
    size_t bytes;
};

/** As the runtime, a library has process state by nature: here its connections. */
struct client {
    pthread_once_t once;
    pthread_mutex_t lock;  /**< recursive: host functions may make calls */
    struct connection *at; /**< where calls go; NULL: to the device in this process */
    bool several;          /**< devices: calls may have to be made again */
    bool told;             /**< that device has been told of the modules */
    struct connection own; /**< of the device that SIMT_DEVICE names */
    struct connection *attached;
    struct span readable, writable; /**< by a restricted connection */
    struct packet_watch watch;
    struct known_layout *layouts;
    struct kept *kept;
    struct sigaction before;
};

static struct client *the_client(void) {
    static struct client client = {.once = PTHREAD_ONCE_INIT,
                                   .lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                   .own = {.socket = NO_SOCKET}};
    return &client;
}

static void lose(struct connection *connection, const char *line) {
    if (!connection->lost) {
        connection->lost = true;
        if (!connection->restricted) { /* a controller says in its own words what that means */
            fflush(stdout);
            fprintf(stderr, "simt: %s\n", line);
        }
    }
}

static void add_module(struct module *module);

/* ---- Starting ---- */

/** Host code that follows a device pointer ends the program, and is told so. */
static void handle_fault(int number, siginfo_t *info, void *context) {
    struct client *client = the_client();
    const struct sigaction *before = &client->before;
    const struct connection *own = &client->own;
    if ((uint64_t)(uintptr_t)info->si_addr - own->window < own->window_bytes) {
        struct simt_place place = {""};
        (void)simt_ask_place(&place, info->si_addr);
        fprintf(stderr,
                "this host code dereferences a device pointer, %p (%s): copy the data with "
                "cudaMemcpy first\n",
                info->si_addr, place.text);
        _exit(error_exit_status(1));
    }
    if (info->si_code == SEGV_ACCERR && client->at == own && !own->lost &&
        simt_ask_page(info->si_addr, simt_host_fault_writes(context)) == cudaSuccess) {
        return;
    }
    if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(number, info, context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(number);
    } else {
        signal(number, SIG_DFL); /* the instruction faults again and ends the program */
    }
}

/** Takes the addresses of device memory, so that nothing else of the program lies there. */
static void reserve_window(struct client *client, const struct packet *hello) {
    void *wanted = (void *)(uintptr_t)hello->address;
    void *got = mmap(wanted, hello->bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != wanted) {
        runtime_give_up("no address space for the memory of the emulated GPU");
    }
    client->own.window = hello->address;
    client->own.window_bytes = hello->bytes;
    struct sigaction action = {.sa_sigaction = handle_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &client->before);
}

/** The process may be about to end, as all others that shared it have left: then another one is
 *  started. @return of receiving the first packet */
static enum status greet(struct client *client, const char *shared, struct packet *hello) {
    enum { TRIES = 10 };
    enum status status = packet_receive(client->own.socket, hello);
    for (int n = 1; n < TRIES && status == STATUS_IO && shared != NULL; n++) {
        close(client->own.socket);
        client->own.socket = device_process_share(shared);
        status =
            client->own.socket != NO_SOCKET ? packet_receive(client->own.socket, hello) : status;
    }
    return status;
}

/** @param own this program has started the device, which tells the user what is wrong
 *  @param shared the name that others start it by, too; or NULL */
static void connect_device(struct client *client, bool own, const char *shared) {
    struct packet *hello = malloc(sizeof *hello);
    if (hello == NULL || client->own.socket == NO_SOCKET) {
        runtime_give_up("the device process cannot be started");
    }
    enum status status = greet(client, shared, hello);
    if (status == STATUS_OK && hello->kind == PACKET_HELLO && hello->error != 0) {
        _exit(1);
    }
    if (status == STATUS_IO && own) {
        runtime_give_up("the process of the emulated GPU has ended");
    }
    if (status != STATUS_OK || hello->kind != PACKET_HELLO) {
        runtime_give_up("SIMT_DEVICE is not the descriptor of a device process");
    }
    reserve_window(client, hello);
    client->several = hello->thread > 1;
    client->own.foreseen = shared == NULL ? foreseen_create(hello, false) : NULL;
    free(hello);
}

/** The child of a fork has no connection of its own. */
static void forget_in_child(void) {
    struct client *client = the_client();
    pthread_mutex_init(&client->lock, NULL);
    if (client->at != NULL) {
        client->at->socket = NO_SOCKET;
        client->at->lost = true;
    }
}

static void choose(void) {
    struct client *client = the_client();
    const char *value = getenv("SIMT_DEVICE");
    char *end = NULL;
    if (value == NULL || value[0] == '\0' || strcmp(value, "inside") == 0) {
        return;
    }
    long number = strtol(value, &end, 10);
    bool shared = strncmp(value, "shared:", 7) == 0 && value[7] != '\0';
    if (shared) {
        client->own.socket = device_process_share(value + 7);
    } else if (strcmp(value, "process") == 0) {
        client->own.socket = device_process_start();
    } else if (value[0] >= '0' && value[0] <= '9' && *end == '\0' && number < (1 << 20)) {
        client->own.socket = (int)number;
    } else {
        runtime_give_up("SIMT_DEVICE is one of inside, process, shared:NAME, or a descriptor's "
                        "number");
    }
    connect_device(client, shared || strcmp(value, "process") == 0, shared ? value + 7 : NULL);
    pthread_atfork(NULL, NULL, forget_in_child);
    client->at = &client->own;
}

/** Oldest first. */
static void add_modules(struct module *newest) {
    if (newest != NULL) {
        add_modules(newest->next);
        add_module(newest);
    }
}

static void tell_modules(struct client *client) {
    pthread_mutex_lock(&client->lock);
    if (!client->told) {
        __atomic_store_n(&client->told, true, __ATOMIC_RELEASE);
        struct runtime *runtime = runtime_lock();
        add_modules(runtime->modules);
        runtime_unlock(runtime);
    }
    pthread_mutex_unlock(&client->lock);
}

bool client_is_on(void) {
    struct client *client = the_client();
    pthread_once(&client->once, choose);
    if (client->at == &client->own && !__atomic_load_n(&client->told, __ATOMIC_ACQUIRE)) {
        tell_modules(client);
    }
    return client->at != NULL;
}

/* ---- A call ---- */

static void give_text(const struct packet *packet) {
    FILE *stream = packet->call == STDERR_FILENO ? stderr : stdout;
    if (stream == stderr) {
        fflush(stdout);
    }
    fwrite(packet->data + packet->size, 1, packet->extra, stream);
    fflush(stream);
}

static void protect(uint64_t address, uint64_t bytes, int protection) {
    if (mprotect((void *)(uintptr_t)address, bytes, protection) != 0) {
        runtime_give_up("pages of managed memory cannot be protected");
    }
}

/** Sends what the device asks for; where there is no such memory, this thread faults as it would
 *  with the device in its process. */
static enum status give_memory(struct client *client, struct packet *packet) {
    const unsigned char *from = (const unsigned char *)(uintptr_t)packet->address;
    uint64_t address = packet->address;
    uint64_t bytes = packet->bytes;
    uint64_t left = bytes;
    bool take = packet->kind == PACKET_TAKE;
    enum status status = STATUS_OK;
    if (take) {
        protect(address, bytes, PROT_READ); /* what another thread writes now comes later */
    }
    while (left > 0 && status == STATUS_OK) {
        packet_begin(packet, PACKET_DATA);
        packet->extra = (uint32_t)(left < PACKET_BYTES ? left : PACKET_BYTES);
        status = packet_send(client->at->socket, packet, from);
        left -= status == STATUS_OK ? packet->extra : 0;
        from += status == STATUS_OK ? packet->extra : 0;
    }
    if (take && status == STATUS_OK) {
        protect(address, bytes, PROT_NONE);
    }
    if (status == STATUS_INVALID_ARGUMENT) {
        packet_begin(packet, PACKET_FAILED);
        status = packet_send(client->at->socket, packet, NULL);
        for (uint64_t at = 0; at < left; at += 4096) {
            (void)*(const volatile unsigned char *)(from + at);
        }
    }
    return status;
}

static enum status answer(struct client *client, uint64_t address) {
    struct packet *packet = malloc(sizeof *packet);
    if (packet == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    packet_begin(packet, PACKET_DONE);
    packet->address = address;
    enum status status = packet_send(client->at->socket, packet, NULL);
    free(packet);
    return status;
}

static enum status give_pages(struct client *client, size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return answer(client, memory == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)memory);
}

static enum status call_back(struct client *client, const struct packet *packet) {
    void *data = (void *)(uintptr_t)packet->bytes;
    if (packet->kind == PACKET_CALLBACK) {
        ((cudaHostFn_t)(uintptr_t)packet->address)(data);
    } else {
        ((cudaStreamCallback_t)(uintptr_t)packet->address)((cudaStream_t)(uintptr_t)packet->thread,
                                                           (cudaError_t)packet->error, data);
    }
    return answer(client, 0);
}

static bool is_within(const struct span *span, uint64_t address, uint64_t bytes) {
    uint64_t offset = address - (uint64_t)(uintptr_t)span->memory;
    return offset <= span->bytes && bytes <= span->bytes - offset;
}

/** What a device that runs somebody's kernels may ask its controller for. */
static bool may_ask(const struct client *client, const struct packet *packet) {
    switch ((enum packet_kind)packet->kind) {
    case PACKET_TEXT:
        return true;
    case PACKET_PULL:
        return is_within(&client->readable, packet->address, packet->bytes);
    case PACKET_PUSH:
    case PACKET_REPLY:
        return is_within(&client->writable, packet->address, packet->extra);
    default:
        return false;
    }
}

/** Takes memory that came with an answer. @return false: the device may not write there */
static bool take_tail(const struct client *client, const struct packet *packet) {
    if (packet->extra == 0) {
        return true;
    }
    if (client->at->restricted && !may_ask(client, packet)) {
        return false;
    }
    memcpy((void *)(uintptr_t)packet->address, packet->data + packet->size, packet->extra);
    return true;
}

/** Does what the device asks for while it works on a call. */
static enum status serve(struct client *client, struct packet *packet) {
    if (client->at->restricted && !may_ask(client, packet)) {
        return STATUS_BAD_FORMAT;
    }
    switch ((enum packet_kind)packet->kind) {
    case PACKET_TEXT:
        give_text(packet);
        return STATUS_OK;
    case PACKET_PULL:
    case PACKET_TAKE:
        return give_memory(client, packet);
    case PACKET_OPEN:
        protect(packet->address, packet->bytes, PROT_READ | PROT_WRITE);
        return STATUS_OK;
    case PACKET_PUSH:
        memcpy((void *)(uintptr_t)packet->address, packet->data + packet->size, packet->extra);
        return STATUS_OK;
    case PACKET_CALLBACK:
    case PACKET_CALLBACK_OF_STREAM:
        return call_back(client, packet);
    case PACKET_ALLOCATE:
        return give_pages(client, packet->bytes);
    case PACKET_RELEASE:
        munmap((void *)(uintptr_t)packet->address, packet->bytes);
        return STATUS_OK;
    default:
        return STATUS_BAD_FORMAT;
    }
}

void call_begin(struct call *call, uint32_t number) {
    struct client *client = the_client();
    pthread_mutex_lock(&client->lock);
    packet_begin(&call->packet, PACKET_CALL);
    call->packet.call = number;
    call->packet.thread = (uint64_t)pthread_self();
    call->packet.error = *runtime_thread_device();
    client->readable = client->writable = (struct span){NULL, 0};
    call->from = NULL;
    call->at = 0;
    call->failed = false;
    call->refused = cudaSuccess;
}

/** Sends a call behind those that wait, which are none any more. */
static enum status send_call(struct connection *at, struct packet *packet, const void *from) {
    struct packet *posts = at->foreseen != NULL ? &at->foreseen->posts : NULL;
    const struct packet *first = posts != NULL && posts->size > 0 ? posts : NULL;
    enum status status = packet_send_behind(at->socket, first, packet, from);
    if (status == STATUS_INVALID_ARGUMENT) {
        packet->extra = 0; /* the device asks for it, if it comes to that */
        status = packet_send_behind(at->socket, first, packet, NULL);
    }
    if (posts != NULL) {
        posts->size = 0;
        at->foreseen->settled = false; /* until it has answered: host functions may call */
    }
    return status;
}

static enum status exchange(struct client *client, struct call *call) {
    struct packet *packet = &call->packet;
    uint32_t number = packet->call;
    enum status status = send_call(client->at, packet, call->from);
    struct pollfd answers = {.fd = client->at->socket, .events = POLLIN};
    packet_watch(&client->watch, &answers, 1);
    while (status == STATUS_OK) {
        status = packet_receive(client->at->socket, packet);
        if (status == STATUS_OK && packet->kind == PACKET_REPLY) {
            return packet->call == number && take_tail(client, packet) ? STATUS_OK
                                                                       : STATUS_BAD_FORMAT;
        }
        if (status == STATUS_OK) {
            status = serve(client, packet);
        }
    }
    return status;
}

/** Asks again while the device has to wait for other work; meanwhile other threads may call. */
static enum status exchange_again(struct client *client, struct call *call) {
    const struct timespec pause = {.tv_nsec = 200000};
    const void *from = call->from;
    struct packet *request = client->several ? malloc(sizeof *request) : NULL;
    if (request != NULL) {
        memcpy(request, &call->packet, offsetof(struct packet, data) + call->packet.size);
    }
    enum status status = exchange(client, call);
    while (request != NULL && status == STATUS_OK &&
           (cudaError_t)call->packet.error == SIMT_ERROR_AGAIN) {
        pthread_mutex_unlock(&client->lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&client->lock);
        memcpy(&call->packet, request, offsetof(struct packet, data) + request->size);
        call->from = from;
        status = exchange(client, call);
    }
    free(request);
    return status;
}

/** @return whether calls of a program's tell of an error: not the library's own, nor a free, whose
 *  error says little */
static bool tells_errors(uint32_t number) {
    static const bool OWN[CALL_COUNT] = {
#define IS_OWN(name, ...) [CALL_##name] = #name[0] != 'c',
        DEVICE_CALLS(IS_OWN)
#undef IS_OWN
    };
    return !OWN[number] && number != CALL_cudaFree;
}

/** Takes what an answer has beside the results. */
static void take_answer(struct connection *at, const struct call *call) {
    const struct packet *reply = &call->packet;
    if (reply->last != PACKET_NO_ERROR) {
        *runtime_last_error() = (cudaError_t)reply->last;
    }
    *runtime_thread_device() = (int)reply->thread;
    at->program_calls = reply->bytes;
    at->posted = reply->posted != cudaSuccess ? (cudaError_t)reply->posted : at->posted;
    if (at->foreseen != NULL) {
        foreseen_learn(at->foreseen, call, reply);
    }
}

cudaError_t call_run(struct call *call) {
    struct client *client = the_client();
    struct connection *at = client->at;
    call->failed = true;
    if (call->refused != cudaSuccess) {
        return call->refused;
    }
    if (at == NULL || at->lost) {
        return cudaErrorDevicesUnavailable;
    }
    if (at->posted != cudaSuccess && tells_errors(call->packet.call)) {
        cudaError_t posted = at->posted;
        at->posted = cudaSuccess;
        return posted;
    }
    if (at->foreseen != NULL && at->posted == cudaSuccess && foreseen_take(at->foreseen, call)) {
        call->failed = false;
        return cudaSuccess;
    }
    memcpy(call->asked, call->packet.data, sizeof call->asked);
    if (exchange_again(client, call) != STATUS_OK) {
        lose(at, "the process of the emulated GPU has ended");
        return cudaErrorDevicesUnavailable;
    }
    call->failed = false;
    take_answer(at, call);
    return (cudaError_t)call->packet.error;
}

cudaError_t call_end(struct call *call, cudaError_t error) {
    if (call->failed) {
        *runtime_last_error() = error;
    }
    pthread_mutex_unlock(&the_client()->lock);
    return error;
}

void call_put(struct call *call, const void *value, size_t bytes) {
    if (!packet_put(&call->packet, value, bytes)) {
        call->refused = cudaErrorInvalidValue;
    }
}

void call_put_number(struct call *call, uint64_t number) {
    call_put(call, &number, sizeof number);
}

void call_put_target(struct call *call, const void *target, size_t bytes) {
    bool there = target != NULL;
    call_put(call, &there, sizeof there);
    if (there) {
        call_put(call, target, bytes);
    }
}

void call_put_destination(struct call *call, void *to, size_t bytes) {
    the_client()->writable = (struct span){to, bytes};
    call_put_number(call, (uint64_t)(uintptr_t)to);
}

void call_put_source(struct call *call, const void *from, size_t bytes) {
    struct client *client = the_client();
    uint64_t address = (uint64_t)(uintptr_t)from;
    client->readable = (struct span){from, bytes};
    call_put_number(call, address);
    if (from != NULL && bytes > 0 && bytes <= PACKET_ATTACHED &&
        address - client->at->window >= client->at->window_bytes) {
        call->from = from;
        call->packet.address = address;
        call->packet.extra = (uint32_t)bytes;
    }
}

void call_take(struct call *call, void *value, size_t bytes) {
    if (!call->failed && !packet_take(&call->packet, &call->at, value, bytes)) {
        call->failed = true;
    }
}

uint64_t call_take_number(struct call *call) {
    uint64_t number = UNTOUCHED;
    call_take(call, &number, sizeof number);
    return call->failed ? UNTOUCHED : number;
}

/* ---- Texts, nodes, arguments ---- */

void call_put_text(struct call *call, const char *text) {
    bool there = text != NULL;
    uint32_t length = there ? (uint32_t)strlen(text) : 0;
    call_put(call, &there, sizeof there);
    if (there) {
        call_put(call, &length, sizeof length);
        call_put(call, text, length);
    }
}

/** @return memory that stays until the program ends, or NULL. */
static char *keep(size_t bytes) {
    struct client *client = the_client();
    struct kept *kept = malloc(sizeof *kept + bytes);
    if (kept == NULL) {
        return NULL;
    }
    kept->next = client->kept;
    client->kept = kept;
    return kept->bytes;
}

/** The length of what follows, at most @p most. */
static uint32_t take_length(struct call *call, size_t most) {
    uint32_t length = 0;
    call_take(call, &length, sizeof length);
    call->failed = call->failed || length > most;
    return call->failed ? 0 : length;
}

void call_take_text(struct call *call, char *text, int size) {
    if (text != NULL && size > 0) {
        uint32_t length = take_length(call, (size_t)size);
        call_take(call, text, length);
    }
}

void call_take_kept_text(struct call *call, const char **text) {
    uint32_t length = take_length(call, PACKET_BYTES);
    if (call->failed || length == 0) {
        return;
    }
    char *copy = keep((size_t)length + 1);
    if (copy != NULL) {
        copy[length] = '\0';
        call_take(call, copy, length);
        *text = copy;
    }
}

void call_take_nodes(struct call *call, const cudaGraphNode_t **nodes) {
    uint32_t count = take_length(call, PACKET_BYTES / sizeof(uint64_t));
    if (call->failed || nodes == NULL || count == UINT32_MAX) {
        return;
    }
    uint64_t *copy = (uint64_t *)(void *)keep((count + 1) * sizeof *copy);
    if (copy != NULL) {
        call_take(call, copy, count * sizeof *copy);
        *nodes = (const cudaGraphNode_t *)(void *)copy;
    }
}

/** @return how a kernel's arguments lie, or NULL with an error. */
static const struct simt_kernel_layout *layout_of(const void *function, cudaError_t *error) {
    struct client *client = the_client();
    struct known_layout *known = client->layouts;
    while (known != NULL && known->function != function) {
        known = known->next;
    }
    if (known != NULL) {
        return &known->layout;
    }
    known = malloc(sizeof *known);
    *error = known == NULL ? cudaErrorMemoryAllocation : simt_ask_layout(&known->layout, function);
    if (*error != cudaSuccess || known->layout.count > SIMT_MOST_PARAMETERS ||
        known->layout.bytes > PACKET_BYTES) {
        free(known);
        return NULL;
    }
    known->function = function;
    known->next = client->layouts;
    client->layouts = known;
    return &known->layout;
}

static void forget_layouts(struct client *client) {
    while (client->layouts != NULL) {
        struct known_layout *known = client->layouts;
        client->layouts = known->next;
        free(known);
    }
}

/** The parameter block as the kernel will see it. */
void call_put_arguments(struct call *call, void **arguments, const void *kernel) {
    const struct simt_kernel_layout *layout = layout_of(kernel, &call->refused);
    bool there = arguments != NULL && layout != NULL;
    call_put(call, &there, sizeof there);
    if (!there) {
        return;
    }
    uint32_t begin = call->packet.size + (uint32_t)sizeof layout->bytes;
    call_put(call, &layout->bytes, sizeof layout->bytes);
    if (layout->bytes > PACKET_BYTES - begin) {
        call->refused = cudaErrorInvalidValue;
        return;
    }
    memset(call->packet.data + begin, 0, layout->bytes);
    for (uint32_t i = 0; i < layout->count; i++) {
        uint32_t offset = layout->parameters[i].offset;
        uint32_t bytes = layout->parameters[i].bytes;
        if (offset <= layout->bytes && bytes <= layout->bytes - offset) {
            memcpy(call->packet.data + begin + offset, arguments[i], bytes);
        }
    }
    call->packet.size += layout->bytes;
}

void call_put_kernel_node(struct call *call, const struct cudaKernelNodeParams *parameters) {
    call_put_target(call, parameters, sizeof *parameters);
    if (parameters != NULL) {
        call_put_arguments(call, parameters->kernelParams, parameters->func);
    }
}

void call_put_config(struct call *call, const cudaLaunchConfig_t *config) {
    call_put_target(call, config, sizeof *config);
    if (config != NULL && config->attrs != NULL) {
        call_put(call, config->attrs, config->numAttrs * sizeof *config->attrs);
    }
}

void call_take_kernel_node(struct call *call, struct cudaKernelNodeParams *parameters) {
    struct cudaKernelNodeParams taken;
    uint32_t bytes = 0;
    cudaError_t error = cudaSuccess;
    call_take(call, &taken, sizeof taken);
    call_take(call, &bytes, sizeof bytes);
    const struct simt_kernel_layout *layout = !call->failed ? layout_of(taken.func, &error) : NULL;
    if (layout == NULL || layout->bytes != bytes || parameters == NULL) {
        return;
    }
    void **arguments =
        (void **)(void *)keep((layout->count + 1) * sizeof *arguments + layout->bytes);
    if (arguments != NULL) {
        char *block = (char *)(arguments + layout->count + 1);
        call_take(call, block, bytes);
        for (uint32_t i = 0; i < layout->count; i++) {
            arguments[i] = block + layout->parameters[i].offset;
        }
        taken.kernelParams = arguments;
        *parameters = taken;
    }
}

/* ---- Attributes of memory pools ---- */

static size_t pool_value_bytes(enum cudaMemPoolAttr which) {
    bool is_flag = which == cudaMemPoolReuseFollowEventDependencies ||
                   which == cudaMemPoolReuseAllowOpportunistic ||
                   which == cudaMemPoolReuseAllowInternalDependencies;
    return is_flag ? sizeof(int) : sizeof(uint64_t);
}

void call_put_pool_value(struct call *call, const void *value, enum cudaMemPoolAttr which) {
    uint64_t whole = 0;
    if (value != NULL) {
        memcpy(&whole, value, pool_value_bytes(which));
    }
    call_put_target(call, value != NULL ? &whole : NULL, sizeof whole);
}

void call_take_pool_value(struct call *call, void *value, enum cudaMemPoolAttr which) {
    uint64_t whole = 0;
    if (value != NULL) {
        call_take(call, &whole, sizeof whole);
    }
    if (value != NULL && !call->failed) {
        memcpy(value, &whole, pool_value_bytes(which));
    }
}

/* ---- Modules ---- */

static size_t fatbin_bytes(const void *data) {
    enum { HEADER = 16 };
    uint64_t bytes;
    memcpy(&bytes, (const char *)data + 8, sizeof bytes);
    return (size_t)bytes + HEADER;
}

/** The files of which the device links the module; at the first it lacks it says so. */
static void add_files(const struct module *module) {
    const void *const *file = module->wrapper->files;
    while (*file != NULL &&
           simt_add_file(module->remote, *file, fatbin_bytes(*file)) == cudaSuccess) {
        file++;
    }
}

static void add_module(struct module *module) {
    const struct fatbin_wrapper *wrapper = module->wrapper;
    bool magic = wrapper->magic == FATBIN_WRAPPER_MAGIC;
    bool linked = magic && wrapper->version == FATBIN_WRAPPER_LINKED;
    bool known = linked || (magic && wrapper->version == FATBIN_WRAPPER_FILE);
    size_t bytes = known ? fatbin_bytes(wrapper->data) : 0;
    forget_layouts(the_client());
    if (simt_add_module(&module->remote, *wrapper, wrapper->data, bytes) != cudaSuccess) {
        return;
    }
    if (linked) {
        add_files(module);
    }
    for (const struct kernel *k = module->kernels; k != NULL; k = k->next) {
        (void)simt_add_kernel(module->remote, k->host, k->name, k->readable);
    }
    for (const struct variable *v = module->variables; v != NULL; v = v->next) {
        (void)simt_add_variable(module->remote, v->host, v->managed, v->name, v->bytes);
    }
}

void client_add_module(struct module *module) {
    const struct client *client = the_client();
    if (client->at == &client->own && client->told && module->remote == NULL) {
        add_module(module);
    }
}

void client_drop_module(struct module *module) {
    struct client *client = the_client();
    if (client->at == &client->own && !client->own.lost && module->remote != NULL) {
        forget_layouts(client);
        (void)simt_drop_module(module->remote);
    }
}

bool client_load_module(struct module *module) {
    return simt_load_module(module->remote) == cudaSuccess;
}

/** At the end of the program the device says what it leaves. */
__attribute__((destructor)) static void finish(void) {
    const struct client *client = the_client();
    if (client->at == &client->own && !client->own.lost) {
        fflush(stdout);
        const struct runtime *runtime = runtime_lock();
        bool refused = runtime->refused;
        runtime_unlock((struct runtime *)(uintptr_t)runtime);
        if (simt_finish(refused) == cudaErrorLaunchFailure) {
            error_exit();
        }
    }
}

void simt_flush(void);

EXPORTED void simt_flush(void) {
    struct client *client = the_client();
    char gpu[64];
    pthread_mutex_lock(&client->lock);
    const struct foreseen *foreseen = client->at != NULL ? client->at->foreseen : NULL;
    if (foreseen != NULL && foreseen->posts.size > 0) {
        (void)simt_ask_gpu(gpu, sizeof gpu); /* any call that is asked */
    }
    pthread_mutex_unlock(&client->lock);
}

/* ---- A controller: see common/simt/control.h ---- */

const char *simt_control_library(void);
bool simt_control_attach(int socket, double seconds);
bool simt_control_program_calls(uint64_t *calls);
void simt_control_forget(int socket);

EXPORTED const char *simt_control_library(void) {
    static Dl_info library;
    return dladdr((void *)(uintptr_t)device_process_start, &library) != 0 ? library.dli_fname
                                                                          : NULL;
}

static struct connection *find_attached(const struct client *client, int socket) {
    struct connection *connection = client->attached;
    while (connection != NULL && connection->socket != socket) {
        connection = connection->next;
    }
    return connection;
}

static void set_patience(int socket, time_t seconds) {
    const struct timeval patience = {.tv_sec = seconds};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

/** Waits for the device's first packet. @return NULL: it is none */
static struct connection *open_attached(struct client *client, int socket, time_t seconds) {
    struct connection *made = calloc(1, sizeof *made);
    struct packet *hello = malloc(sizeof *hello);
    set_patience(socket, seconds);
    if (made == NULL || hello == NULL || packet_receive(socket, hello) != STATUS_OK ||
        hello->kind != PACKET_HELLO) {
        free(made);
        free(hello);
        return NULL;
    }
    *made = (struct connection){.socket = socket,
                                .restricted = true,
                                .foreseen = foreseen_create(hello, true),
                                .patience = seconds,
                                .window = hello->address,
                                .window_bytes = hello->bytes,
                                .next = client->attached};
    client->attached = made;
    free(hello);
    return made;
}

EXPORTED bool simt_control_attach(int socket, double seconds) {
    struct client *client = the_client();
    time_t patience = (time_t)seconds;
    pthread_mutex_lock(&client->lock);
    struct connection *found = find_attached(client, socket);
    if (found != NULL && found->patience != patience) {
        set_patience(socket, patience);
        found->patience = patience;
    }
    client->at = found != NULL || socket < 0 ? found : open_attached(client, socket, patience);
    bool good = socket < 0 || client->at != NULL;
    pthread_mutex_unlock(&client->lock);
    return good;
}

EXPORTED bool simt_control_program_calls(uint64_t *calls) {
    struct client *client = the_client();
    pthread_mutex_lock(&client->lock);
    bool alive = client->at != NULL && !client->at->lost;
    *calls = alive ? client->at->program_calls : 0;
    pthread_mutex_unlock(&client->lock);
    return alive;
}

EXPORTED void simt_control_forget(int socket) {
    struct client *client = the_client();
    pthread_mutex_lock(&client->lock);
    struct connection **link = &client->attached;
    while (*link != NULL && (*link)->socket != socket) {
        link = &(*link)->next;
    }
    struct connection *connection = *link;
    if (connection != NULL) {
        client->at = client->at == connection ? NULL : client->at;
        *link = connection->next;
        foreseen_free(connection->foreseen);
        free(connection);
    }
    pthread_mutex_unlock(&client->lock);
}
