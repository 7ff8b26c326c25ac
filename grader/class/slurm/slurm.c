#include "grader/class/slurm/slurm.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grader/class/slurm/slurm_command.h"
#include "grader/class/slurm/slurm_ledger.h"
#include "grader/class/slurm/slurm_nodes.h"
#include "grader/class/slurm/slurm_queue.h"
#include "grader/class/slurm/slurm_store.h"
#include "grader/class/slurm/slurm_words.h"
#include "grader/class/task.h"

/* How often squeue is asked, and not more than a twentieth of the time; how long is waited. */
static const double ASK_S = 2, ASK_SHARE = 20, AWAY_S = 5, ANSWER_S = 30, SUBMIT_S = 60,
                    OPEN_S = 10, CANCEL_S = 10, NOTES_S = 0.5;

enum { DEFAULT_ARRAY = 1001, ARGUMENTS = SLURM_WORDS + 24 };

struct slurm {
    struct slurm_store store;
    struct ledger ledger;
    struct slurm_queue queue;
    struct slurm_words words;
    struct slurm_nodes nodes;
    struct slurm_command asking; /* squeue under way */
    double ask_next, notes_next;
    size_t jobs;  /* 0: no limit of ours */
    size_t array; /* most tasks that sbatch takes at once, as far as is known */
    char output[STORE_PATH];
    char gres[100];                /* "--gres=gpu:1" or "" */
    char time[40];                 /* "--time=MINUTES" or "" */
    char exclude[NODES_LIST + 20]; /* "--exclude=NODES" or "" */
    char trouble[300];             /* why Slurm gives no answer at the moment, or "" */
};

static enum status set_options(struct slurm *s, const struct backend_options *o,
                               struct error *error) {
    const char *gpu = o->gpu != NULL ? o->gpu : "";
    if (strlen(gpu) > 60 || gpu[strspn(gpu, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_.-")] != '\0') {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--gpu %.60s: a type of Slurm's generic resource gpu is wanted, as h100",
                         gpu);
    }
    if (o->needs_gpu || o->gpu != NULL) {
        snprintf(s->gres, sizeof s->gres, "--gres=gpu:%s%s1", gpu, gpu[0] != '\0' ? ":" : "");
    }
    if (o->limit_s > 0) {
        snprintf(s->time, sizeof s->time, "--time=%.0f", ceil(o->limit_s / 60) + 1);
    }
    s->jobs = o->jobs;
    if (snprintf(s->output, sizeof s->output, "%s", o->folder) >= (int)sizeof s->output) {
        return error_set(error, STATUS_TOO_LONG, "%.100s...: path is too long", o->folder);
    }
    return slurm_words_split(&s->words, o->text, error);
}

/* MaxArraySize is one more than the largest index. Without an answer: Slurm's default. */
static size_t ask_array_size(void) {
    struct slurm_reply reply;
    size_t size = DEFAULT_ARRAY;
    bool answered =
        slurm_command_run((char *[]){"scontrol", "show", "config", NULL}, OPEN_S, &reply);
    const char *line = answered ? strstr(reply.text, "MaxArraySize") : NULL;
    unsigned long value;
    if (line != NULL && sscanf(line, "MaxArraySize = %lu", &value) == 1) {
        size = value > 0 ? value : 1;
    }
    slurm_reply_free(&reply);
    return size;
}

static enum status begin_asking(struct slurm *s, struct error *error) {
    return slurm_command_start(&s->asking,
                               (char *[]){"squeue", "--noheader", "--array", "--states=all",
                                          "--sort=-p,i", "--format=" SLURM_QUEUE_FORMAT, NULL},
                               error);
}

/* Puts what squeue said into the ledger, or into `trouble`. */
static void take_answer(struct slurm *s, struct slurm_reply *reply, double asked) {
    struct error error = {0};
    double now = slurm_clock(), share = ASK_SHARE * (now - asked);
    s->ask_next = now + (share > ASK_S ? share : ASK_S);
    snprintf(s->trouble, sizeof s->trouble, "%s", reply->line);
    if (s->trouble[0] == '\0') {
        enum status status =
            slurm_queue_read(&s->queue, reply->text, getuid(), s->store.name, &error);
        if (status == STATUS_OK) {
            ledger_answer(&s->ledger, &s->queue, asked);
        } else {
            snprintf(s->trouble, sizeof s->trouble, "%.299s", error_text(&error, status));
        }
    }
    if (s->trouble[0] != '\0') {
        s->ask_next = now + AWAY_S;
    }
    slurm_reply_free(reply);
}

/* What an earlier collector started and Slurm does not have any more is forgotten, and should it
   come after all, does nothing. */
static enum status take_over(struct slurm *s, struct error *error) {
    struct slurm_reply reply;
    if (s->ledger.task_count == 0) {
        return STATUS_OK;
    }
    TRY(begin_asking(s, error));
    double asked = s->asking.begun;
    (void)slurm_command_wait(&s->asking, OPEN_S, &reply);
    take_answer(s, &reply, asked);
    if (s->trouble[0] != '\0') {
        return STATUS_OK; /* all of it may still run: poll() will see */
    }
    ledger_forget_away(&s->ledger);
    for (size_t i = 0; i < s->ledger.batch_count; i++) {
        unsigned batch = s->ledger.batches[i].number;
        if (!ledger_has_batch(&s->ledger, batch)) {
            TRY(slurm_store_void(&s->store, batch, error));
        }
    }
    return slurm_store_notes(&s->store, &s->ledger, error);
}

static enum status set_up(struct slurm *s, const struct backend_options *o, struct error *error) {
    struct slurm_reply reply;
    TRY(set_options(s, o, error));
    bool there = slurm_command_run((char *[]){"sbatch", "--version", NULL}, OPEN_S, &reply);
    slurm_reply_free(&reply);
    if (!there) {
        return error_set(error, STATUS_NOT_FOUND, "--backend slurm: %s", reply.line);
    }
    /* Asked before anything counts as submitted later. */
    TRY(slurm_store_open(&s->store, s->output, &s->ledger, slurm_clock() - 1, error));
    s->array = ask_array_size();
    return take_over(s, error);
}

static void slurm_close(void *self) {
    struct slurm *s = self;
    slurm_command_stop(&s->asking);
    ledger_free(&s->ledger);
    slurm_nodes_free(&s->nodes);
    slurm_queue_free(&s->queue);
    free(s);
}

static enum status slurm_open(void **self, const struct backend_options *o, struct error *error) {
    struct slurm *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = set_up(s, o, error);
    if (status != STATUS_OK) {
        slurm_close(s);
        return status;
    }
    *self = s;
    return STATUS_OK;
}

static bool slurm_has(void *self, unsigned id) {
    const struct slurm *s = self;
    return ledger_has(&s->ledger, id);
}

/* With --jobs an array has its own limit ("%N"), so another one must wait until that is not used.
 */
static size_t slurm_room(void *self) {
    const struct slurm *s = self;
    size_t active = ledger_active(&s->ledger);
    if (s->jobs == 0 || active == 0) {
        return s->array;
    }
    size_t left = active < s->jobs ? s->jobs - active : 0;
    return left < s->array ? left : s->array;
}

/* sbatch's command line. */
struct submission {
    char *arguments[ARGUMENTS];
    size_t count;
    char name[64], comment[40], array[64], batch[16];
};

static void add(struct submission *b, const char *word) {
    if (word[0] != '\0') {
        b->arguments[b->count++] = (char *)(uintptr_t)word;
    }
}

/* The user's words come after ours, so that they count. */
static void compose(struct submission *b, const struct slurm *s, unsigned batch, size_t count) {
    snprintf(b->name, sizeof b->name, "--job-name=%s", s->store.name);
    snprintf(b->comment, sizeof b->comment, "--comment=%u", batch);
    snprintf(b->batch, sizeof b->batch, "%u", batch);
    int used = snprintf(b->array, sizeof b->array, "--array=0-%zu", count - 1);
    if (s->jobs > 0) {
        snprintf(b->array + used, sizeof b->array - (size_t)used, "%%%zu", s->jobs);
    }
    const char *const ours[] = {"sbatch",
                                "--parsable",
                                b->name,
                                b->comment,
                                b->array,
                                "--no-requeue",
                                "--nodes=1",
                                "--ntasks=1",
                                "--chdir=/",
                                "--output=/dev/null",
                                "--error=/dev/null",
                                s->gres,
                                s->time};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        add(b, ours[i]);
    }
    for (size_t i = 0; i < s->words.count; i++) {
        add(b, s->words.list[i]);
    }
    add(b, s->exclude);
    add(b, s->store.script);
    add(b, s->output);
    add(b, b->batch);
}

/* Some clusters allow fewer tasks of one user than an array may have. */
static void take_refusal(struct slurm *s, const char *line, size_t count) {
    bool too_many =
        strstr(line, "submit limit") != NULL || strstr(line, "array specification") != NULL;
    if (too_many && count > 1) {
        s->array = count / 2;
    }
}

static enum status submit(struct slurm *s, unsigned batch, const unsigned *ids, size_t count,
                          struct error *error) {
    struct submission b = {0};
    struct slurm_reply reply;
    compose(&b, s, batch, count);
    if (!slurm_command_run(b.arguments, SUBMIT_S, &reply)) {
        slurm_reply_free(&reply);
        take_refusal(s, reply.line, count);
        return error_set(error, STATUS_IO, "%s", reply.line);
    }
    unsigned job = (unsigned)strtoul(reply.text, NULL, 10);
    slurm_reply_free(&reply);
    return ledger_add(&s->ledger, batch, job, ids, count, slurm_clock(), error);
}

/* sbatch may fail after slurmctld took the batch: no answer in time. So it is made void. */
static enum status slurm_start(void *self, const unsigned *ids, size_t count, struct error *error) {
    struct slurm *s = self;
    unsigned batch;
    TRY(slurm_store_add(&s->store, ids, count, &batch, error));
    enum status status = submit(s, batch, ids, count, error);
    if (status != STATUS_OK) {
        TRY(slurm_store_void(&s->store, batch, error));
    }
    return status;
}

static enum status look(struct slurm *s, double now, struct error *error) {
    if (now >= s->notes_next) {
        s->notes_next = now + NOTES_S;
        TRY(slurm_store_notes(&s->store, &s->ledger, error));
    }
    if (s->asking.process == 0 && now >= s->ask_next && ledger_active(&s->ledger) > 0) {
        TRY(begin_asking(s, error));
    }
    struct slurm_reply reply;
    double asked = s->asking.begun;
    if (s->asking.process != 0 && slurm_command_ended(&s->asking, ANSWER_S, &reply)) {
        take_answer(s, &reply, asked);
    }
    return STATUS_OK;
}

/* Tasks that wait, and all later ones, leave a node that fails them out. */
static void exclude(struct slurm *s) {
    char list[NODES_LIST], update[NODES_LIST + 20], name[64];
    struct slurm_reply reply;
    (void)slurm_nodes_list(&s->nodes, slurm_words_value(&s->words, "--exclude", "-x"), list);
    snprintf(s->exclude, sizeof s->exclude, "--exclude=%s", list);
    snprintf(update, sizeof update, "ExcNodeList=%s", list);
    snprintf(name, sizeof name, "JobName=%s", s->store.name);
    /* It fails for tasks that run already. */
    (void)slurm_command_run((char *[]){"scontrol", "update", name, update, NULL}, OPEN_S, &reply);
    slurm_reply_free(&reply);
}

static enum status note_nodes(struct slurm *s, const struct backend_end *ends, size_t count,
                              double now, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        bool graded = ends[i].how == BACKEND_EXITED && ends[i].code == TASK_DONE;
        if (graded || ends[i].by_node) {
            TRY(slurm_nodes_end(&s->nodes, ends[i].node, ends[i].id, ends[i].by_node, error));
        }
    }
    for (size_t i = 0; i < s->ledger.task_count; i++) {
        const struct ledger_task *task = &s->ledger.tasks[i];
        if (!task->told && task->state == SLURM_RUNS && task->runs_since > 0) {
            TRY(slurm_nodes_run(&s->nodes, task->node, now - task->runs_since, error));
        }
    }
    const struct slurm_node *node = slurm_nodes_exclude(&s->nodes);
    if (node == NULL) {
        return STATUS_OK;
    }
    exclude(s);
    return error_set(error, STATUS_IO,
                     "node %s failed %u tasks in a row while others grade: it gets no more of them "
                     "(tasks/ID/said has the reason)",
                     node->name, node->failures);
}

static enum status slurm_poll(void *self, struct backend_end *ends, size_t most, size_t *count,
                              struct error *error) {
    struct slurm *s = self;
    double now = slurm_clock();
    enum status status = look(s, now, error);
    *count = ledger_take(&s->ledger, ends, most, now);
    TRY(note_nodes(s, ends, *count, now, error));
    if (status == STATUS_OK && s->trouble[0] != '\0') {
        return error_set(error, STATUS_IO, "%s; jobs go on, and Slurm is asked again", s->trouble);
    }
    return status;
}

static void slurm_describe(void *self, char *text, size_t size) {
    const struct slurm *s = self;
    ledger_describe(&s->ledger, text, size);
}

/* Tasks that wait while slurmctld is away will do nothing, as their batch is void. */
static void slurm_cancel(void *self) {
    struct slurm *s = self;
    char name[64];
    struct slurm_reply reply;
    for (size_t i = 0; i < s->ledger.batch_count; i++) {
        unsigned batch = s->ledger.batches[i].number;
        struct error error = {0};
        if (ledger_has_batch(&s->ledger, batch) &&
            slurm_store_void(&s->store, batch, &error) != STATUS_OK) {
            continue; /* scancel will do */
        }
    }
    snprintf(name, sizeof name, "--name=%s", s->store.name);
    (void)slurm_command_run((char *[]){"scancel", "--me", name, NULL}, CANCEL_S, &reply);
    slurm_reply_free(&reply);
}

const struct backend backend_slurm = {.name = "slurm",
                                      .open = slurm_open,
                                      .has = slurm_has,
                                      .room = slurm_room,
                                      .start = slurm_start,
                                      .poll = slurm_poll,
                                      .describe = slurm_describe,
                                      .cancel = slurm_cancel,
                                      .close = slurm_close};
