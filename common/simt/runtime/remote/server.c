#include "common/simt/runtime/remote/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/state.h"

enum { CONNECTIONS = 2 };

static void send_reply(struct server *server, struct frame *frame) {
    struct packet *reply = frame->reply;
    reply->call = frame->request->call;
    reply->error = (int32_t)frame->error;
    reply->last = (int32_t)*runtime_last_error();
    reply->thread = (uint64_t)*runtime_thread_device();
    reply->bytes = server->runtime->controlled ? server->runtime->calls : 0;
    if (packet_send(server->socket, reply, NULL) != STATUS_OK) {
        server->broken = true;
    }
}

/** The last error is the program's: here it only shows whether the call set it. */
static bool begin_thread(const struct server *server, const struct packet *request) {
    if (request->error < 0 || request->error >= server->runtime->settings.devices) {
        return false;
    }
    *runtime_thread() = request->thread;
    *runtime_thread_device() = request->error;
    *runtime_last_error() = (cudaError_t)PACKET_NO_ERROR;
    return true;
}

bool server_call(struct server *server) {
    struct packet *request = server->requests[server->depth];
    struct frame frame = {.server = server,
                          .request = request,
                          .reply = server->replies[server->depth],
                          .good = true};
    if (request->kind != PACKET_CALL || server->depth + 1 >= SERVER_DEPTH ||
        !begin_thread(server, request)) {
        return false;
    }
    packet_begin(frame.reply, PACKET_REPLY);
    server->depth++;
    bool known = serve_number(&frame, request->call);
    if (known && !frame.good) {
        *runtime_last_error() = frame.error;
    }
    fflush(stdout);
    fflush(stderr);
    frame_free(&frame);
    server->depth--;
    if (!known || server->broken) {
        return false;
    }
    send_reply(server, &frame);
    return !server->broken;
}

bool server_greet(const struct server *server, int socket) {
    struct packet *hello = server->between;
    const struct simt_extent window = simt_memory_window(server->runtime->memory);
    packet_begin(hello, PACKET_HELLO);
    hello->address = window.begin;
    hello->bytes = window.end - window.begin;
    hello->thread = (uint64_t)server->runtime->settings.devices;
    return packet_send(socket, hello, NULL) == STATUS_OK;
}

bool server_prepare(struct server *server) {
    bool good = true;
    for (size_t i = 0; i < SERVER_DEPTH; i++) {
        server->requests[i] = malloc(sizeof *server->requests[i]);
        server->replies[i] = malloc(sizeof *server->replies[i]);
        good = good && server->requests[i] != NULL && server->replies[i] != NULL;
    }
    server->between = malloc(sizeof *server->between);
    good = good && server->between != NULL &&
           getrandom(&server->key, sizeof server->key, 0) == (ssize_t)sizeof server->key;
    server->key |= UINT64_C(1) << 63; /* no handle is a small number */
    server->socket = -1;
    server_open_program(server);
    return good;
}

/** Ends the process when nobody is left, even while a kernel runs. */
static void *watch(void *argument) {
    const struct pollfd *sockets = argument;
    struct pollfd last = sockets[CONNECTIONS - 1].fd >= 0 ? sockets[CONNECTIONS - 1] : sockets[0];
    last.events = 0;
    while (poll(&last, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
}

bool server_serve(struct server *server, int socket, bool controller) {
    struct runtime *runtime = server->runtime;
    double before = runtime->clock;
    server->socket = socket;
    server->broken = false;
    runtime->controlled = controller;
    enum status received = packet_receive(socket, server->requests[0]);
    runtime->calls += !controller && received != STATUS_IO; /* the end of a program is no call */
    bool good = received == STATUS_OK && server_call(server);
    runtime->controller_nanoseconds += controller ? runtime->clock - before : 0;
    server->socket = -1;
    return good;
}

static void serve_one(struct server *server, struct pollfd *socket, bool controller) {
    if (!server_serve(server, socket->fd, controller)) {
        close(socket->fd);
        socket->fd = -1;
    }
}

static int serve_all(struct server *server, struct pollfd sockets[CONNECTIONS]) {
    bool controlled = sockets[1].fd >= 0;
    struct packet_watch watch = {0};
    while (sockets[controlled].fd >= 0) { /* it ends with its controller */
        packet_watch(&watch, sockets, CONNECTIONS);
        if (poll(sockets, CONNECTIONS, -1) < 0 && errno != EINTR) {
            return 1;
        }
        for (size_t i = 0; i < CONNECTIONS; i++) {
            if (sockets[i].fd >= 0 && sockets[i].revents != 0) {
                serve_one(server, &sockets[i], i == 1);
            }
        }
    }
    return 0;
}

/** Tells the program that it need not say what the user has read. */
static void say_goodbye(void) {
    struct packet goodbye;
    packet_begin(&goodbye, PACKET_HELLO);
    goodbye.error = 1;
    enum status status = packet_send(SIMT_DEVICE_PROGRAM, &goodbye, NULL);
    (void)status;
}

/** A program that does not take its answers must not keep the controller from its own. */
static void limit_sending(int program) {
    enum { SECONDS = 10 };
    const struct timeval patience = {.tv_sec = SECONDS};
    setsockopt(program, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

/** What a device process cannot do ends it here. */
struct runtime *server_begin(void) {
    (void)dlopen(SIMT_DEVICE_UNPACKS, RTLD_NOW); /* later there are no files */
    struct runtime *runtime = runtime_lock();
    runtime->gives_up = say_goodbye;
    runtime_unlock(runtime);
    runtime = runtime_enter(); /* a setting that is wrong ends the process here */
    runtime_unlock(runtime);
    if (runtime->settings.xray[0] != '\0') {
        runtime_give_up("SIMT_XRAY needs the device in the program's process, which can write the "
                        "page: leave SIMT_DEVICE away");
    }
    if (runtime->settings.report_file[0] != '\0') {
        runtime_give_up("SIMT_REPORT_FILE needs the device in the program's process, which can "
                        "write the file: leave SIMT_DEVICE away");
    }
    return runtime;
}

int server_run(int program, int controller, bool confined) {
    static struct server server; /* the process has one */
    static struct pollfd sockets[CONNECTIONS];
    pthread_t watcher;
    sockets[0] = (struct pollfd){.fd = program, .events = POLLIN};
    sockets[1] = (struct pollfd){.fd = controller, .events = POLLIN};
    server.runtime = server_begin();
    if (!server_prepare(&server) || !server_redirect_output(&server)) {
        return 1;
    }
    server.runtime->program = &server.program;
    if (program >= 0 && controller >= 0) {
        limit_sending(program);
    }
    if (pthread_create(&watcher, NULL, watch, sockets) != 0 || (confined && !confine())) {
        return 1;
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (sockets[i].fd >= 0 && !server_greet(&server, sockets[i].fd)) {
            close(sockets[i].fd);
            sockets[i].fd = -1;
        }
    }
    return serve_all(&server, sockets);
}
