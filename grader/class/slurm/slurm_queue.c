#include "grader/class/slurm/slurm_queue.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"

enum field { USER, JOB, INDEX, STATE, REASON, PARTITION, NODE, COMMENT, NAME, FIELDS };

/* What comes to an end by itself counts as running: its last word follows. */
static enum slurm_state state_of(const char *word) {
    static const char *const over[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",
                                       "FAILED",    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
                                       "REVOKED",   "TIMEOUT",   "LAUNCH_FAILED"};
    static const char *const waits[] = {"PENDING",       "CONFIGURING",  "REQUEUED",
                                        "REQUEUE_HOLD",  "REQUEUE_FED",  "SPECIAL_EXIT",
                                        "RESV_DEL_HOLD", "RECONFIG_FAIL"};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
        if (strcmp(word, over[i]) == 0) {
            return SLURM_OVER;
        }
    }
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        if (strcmp(word, waits[i]) == 0) {
            return SLURM_WAITS;
        }
    }
    return SLURM_RUNS;
}

/* Cuts a line into its fields; the last keeps whatever is in it. */
static bool cut(char *line, char *fields[FIELDS]) {
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = line;
        char *bar = strchr(line, '|');
        if (i + 1 < FIELDS) {
            if (bar == NULL) {
                return false;
            }
            *bar = '\0';
            line = bar + 1;
        }
    }
    return true;
}

static bool read_number(const char *text, unsigned *number) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *number = (unsigned)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value <= INT_MAX;
}

/* Whether the job is one of ours; then fills it in. A batch that has not been expanded into its
   tasks has no index. */
static bool read_job(struct slurm_job *job, char *const fields[FIELDS], unsigned user,
                     const char *name) {
    unsigned owner;
    *job = (struct slurm_job){.state = state_of(fields[STATE])};
    if (strcmp(fields[NAME], name) != 0 || !read_number(fields[USER], &owner) || owner != user ||
        !read_number(fields[JOB], &job->job) || !read_number(fields[INDEX], &job->index) ||
        !read_number(fields[COMMENT], &job->batch)) {
        return false;
    }
    bool none = strcmp(fields[REASON], "None") == 0;
    snprintf(job->word, sizeof job->word, "%.23s", fields[STATE]);
    snprintf(job->reason, sizeof job->reason, "%.39s", none ? "" : fields[REASON]);
    snprintf(job->node, sizeof job->node, "%.63s", fields[NODE]);
    return true;
}

/* Tasks that wait in one partition; which one counts is known at our first. */
struct line_up {
    char partition[64];
    size_t place, waiting;
};

enum { MOST_PARTITIONS = 64 };

static struct line_up *line_up_of(struct line_up *all, size_t *count, const char *partition) {
    for (size_t i = 0; i < *count; i++) {
        if (strncmp(all[i].partition, partition, sizeof all[i].partition - 1) == 0) {
            return &all[i];
        }
    }
    if (*count == MOST_PARTITIONS) {
        return NULL;
    }
    snprintf(all[*count].partition, sizeof all->partition, "%.63s", partition);
    return &all[(*count)++];
}

static enum status read_lines(struct slurm_queue *q, char *text, unsigned user, const char *name,
                              struct line_up *line_ups, struct error *error) {
    size_t partitions = 0;
    char *rest = NULL, *fields[FIELDS];
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        struct slurm_job job;
        if (!cut(line, fields)) {
            return error_set(error, STATUS_BAD_FORMAT, "squeue: cannot read its line '%.100s'",
                             line);
        }
        bool ours = read_job(&job, fields, user, name);
        struct line_up *line_up = line_up_of(line_ups, &partitions, fields[PARTITION]);
        if (strcmp(fields[STATE], "PENDING") == 0 && line_up != NULL) {
            line_up->waiting++;
            if (ours && line_up->place == 0) {
                line_up->place = line_up->waiting;
            }
        }
        if (ours) {
            if (!array_grow(&q->jobs, &q->capacity, q->count + 1, sizeof *q->jobs)) {
                return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the queue");
            }
            q->jobs[q->count++] = job;
        }
    }
    for (size_t i = 0; i < partitions; i++) {
        if (line_ups[i].place > 0 && (q->place == 0 || line_ups[i].place < q->place)) {
            q->place = line_ups[i].place;
            q->waiting = line_ups[i].waiting;
        }
    }
    return STATUS_OK;
}

enum status slurm_queue_read(struct slurm_queue *queue, char *text, unsigned user, const char *name,
                             struct error *error) {
    queue->count = queue->place = queue->waiting = 0;
    struct line_up *line_ups = calloc(MOST_PARTITIONS, sizeof *line_ups);
    if (line_ups == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the queue");
    }
    enum status status = read_lines(queue, text, user, name, line_ups, error);
    free(line_ups);
    return status;
}

void slurm_queue_free(struct slurm_queue *queue) {
    free(queue->jobs);
    *queue = (struct slurm_queue){0};
}
