#include "grader/class/slurm/slurm_ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "grader/class/task.h"

enum { SHOWN_NODES = 4 };

enum status ledger_add(struct ledger *l, unsigned batch, unsigned job, const unsigned *ids,
                       size_t count, double now, struct error *error) {
    if (!array_grow(&l->tasks, &l->task_capacity, l->task_count + count, sizeof *l->tasks) ||
        !array_grow(&l->batches, &l->batch_capacity, l->batch_count + 1, sizeof *l->batches)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tasks", count);
    }
    l->batches[l->batch_count++] = (struct ledger_batch){
        .number = batch, .first = l->task_count, .count = count, .submitted = now};
    for (size_t i = 0; i < count; i++) {
        l->tasks[l->task_count++] =
            (struct ledger_task){.id = ids[i], .state = SLURM_WAITS, .job = job};
    }
    return STATUS_OK;
}

static struct ledger_task *find(struct ledger *l, unsigned batch, unsigned index) {
    for (size_t i = 0; i < l->batch_count; i++) {
        if (l->batches[i].number == batch && index < l->batches[i].count) {
            return &l->tasks[l->batches[i].first + index];
        }
    }
    return NULL;
}

/* Every task is away until the answer has it. */
static void expect_away(struct ledger *l, double asked) {
    for (size_t b = 0; b < l->batch_count; b++) {
        const struct ledger_batch *batch = &l->batches[b];
        for (size_t i = batch->first; batch->submitted < asked && i < batch->first + batch->count;
             i++) {
            struct ledger_task *task = &l->tasks[i];
            task->away_since = task->away == 0 ? asked : task->away_since;
            task->away++;
        }
    }
}

void ledger_answer(struct ledger *l, const struct slurm_queue *queue, double asked) {
    expect_away(l, asked);
    for (size_t i = 0; i < queue->count; i++) {
        const struct slurm_job *job = &queue->jobs[i];
        struct ledger_task *task = find(l, job->batch, job->index);
        if (task == NULL || task->told) {
            continue;
        }
        task->state = job->state;
        task->job = job->job;
        snprintf(task->word, sizeof task->word, "%s", job->word);
        snprintf(task->reason, sizeof task->reason, "%s", job->reason);
        snprintf(task->node, sizeof task->node, "%s", job->node);
        bool begins = job->state == SLURM_RUNS && task->runs_since == 0;
        task->runs_since = begins ? asked : task->runs_since;
        if (job->state != SLURM_OVER) {
            task->away = 0;
        }
    }
    l->place = queue->place;
    l->waiting = queue->waiting;
}

void ledger_note(struct ledger *l, unsigned batch, unsigned index, int code, const char *node) {
    struct ledger_task *task = find(l, batch, index);
    if (task != NULL && !task->told) {
        task->noted = true;
        task->code = code;
        snprintf(task->node, sizeof task->node, "%.63s", node);
    }
}

static bool is_over(const struct ledger_task *task, double now) {
    return task->noted ||
           (task->away >= LEDGER_ANSWERS && now - task->away_since >= LEDGER_GRACE_S);
}

/* One line for a task that ended without a note. */
static void say_why(char *why, size_t size, const struct ledger_task *task, unsigned index) {
    char job[40] = "its job", node[70] = "";
    if (task->job != 0) {
        snprintf(job, sizeof job, "job %u_%u", task->job, index);
    }
    if (task->node[0] != '\0') {
        snprintf(node, sizeof node, " on %s", task->node);
    }
    if (task->state == SLURM_OVER) {
        snprintf(why, size, "%.39s%.69s ended without a result: %.23s%s%.39s", job, node,
                 task->word, task->reason[0] != '\0' ? ", " : "", task->reason);
    } else {
        snprintf(why, size, "%s%s is gone from Slurm's queue without a result", job, node);
    }
}

/* run_task.sh says what a node without the shared folder cannot note: it fails. */
static bool is_by_node(const struct ledger_task *task) {
    if (task->noted) {
        return task->code == TASK_RETRY;
    }
    return task->state == SLURM_OVER &&
           (strcmp(task->word, "FAILED") == 0 || strcmp(task->word, "LAUNCH_FAILED") == 0);
}

static struct backend_end end_of(const struct ledger_task *task, unsigned index) {
    struct backend_end end = {.id = task->id, .how = BACKEND_LOST, .by_node = is_by_node(task)};
    snprintf(end.node, sizeof end.node, "%s", task->node);
    if (!task->noted) {
        say_why(end.why, sizeof end.why, task, index);
    } else if (task->code > 128) {
        end.how = BACKEND_SIGNALLED;
        end.code = task->code - 128;
    } else {
        end.how = BACKEND_EXITED;
        end.code = task->code;
    }
    return end;
}

size_t ledger_take(struct ledger *l, struct backend_end *ends, size_t most, double now) {
    size_t count = 0;
    for (size_t b = 0; b < l->batch_count; b++) {
        for (size_t i = 0; i < l->batches[b].count && count < most; i++) {
            struct ledger_task *task = &l->tasks[l->batches[b].first + i];
            if (!task->told && is_over(task, now)) {
                ends[count++] = end_of(task, (unsigned)i);
                task->told = true;
            }
        }
    }
    return count;
}

void ledger_forget_away(struct ledger *l) {
    for (size_t i = 0; i < l->task_count; i++) {
        l->tasks[i].told = l->tasks[i].told || l->tasks[i].away > 0;
    }
}

bool ledger_has(const struct ledger *l, unsigned id) {
    for (size_t i = 0; i < l->task_count; i++) {
        if (l->tasks[i].id == id && !l->tasks[i].told) {
            return true;
        }
    }
    return false;
}

bool ledger_has_batch(const struct ledger *l, unsigned batch) {
    for (size_t b = 0; b < l->batch_count; b++) {
        for (size_t i = 0; l->batches[b].number == batch && i < l->batches[b].count; i++) {
            if (!l->tasks[l->batches[b].first + i].told) {
                return true;
            }
        }
    }
    return false;
}

size_t ledger_active(const struct ledger *l) {
    size_t active = 0;
    for (size_t i = 0; i < l->task_count; i++) {
        active += !l->tasks[i].told;
    }
    return active;
}

/* Nodes by name, each once. */
struct names {
    const char *list[SHOWN_NODES];
    size_t count;
    bool more;
};

static void add_name(struct names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->list[i], name) == 0) {
            return;
        }
    }
    if (names->count == SHOWN_NODES) {
        names->more = true;
    } else if (name[0] != '\0') {
        names->list[names->count++] = name;
    }
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

void ledger_describe(const struct ledger *l, char *text, size_t size) {
    struct names names = {0};
    size_t runs = 0, waits = 0;
    const char *reason = "";
    for (size_t i = 0; i < l->task_count; i++) {
        const struct ledger_task *task = &l->tasks[i];
        if (task->told || task->noted || task->state == SLURM_OVER) {
            continue;
        }
        if (task->state == SLURM_RUNS) {
            runs++;
            add_name(&names, task->node);
        } else {
            reason = waits++ == 0 ? task->reason : reason;
        }
    }
    snprintf(text, size, "%zu running", runs);
    for (size_t i = 0; i < names.count; i++) {
        append(text, size, "%s %s", i == 0 ? " on" : "", names.list[i]);
    }
    append(text, size, "%s, %zu waiting", names.more ? " ..." : "", waits);
    if (reason[0] != '\0') {
        append(text, size, " (%s)", reason);
    }
    if (waits > 0 && l->place > 0) {
        append(text, size, ", first in the queue at place %zu of %zu", l->place, l->waiting);
    }
}

void ledger_free(struct ledger *l) {
    free(l->tasks);
    free(l->batches);
    *l = (struct ledger){0};
}
