#include "common/ranks/started.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The variables of one launcher. */
struct names {
    const char *by, *rank, *count, *local;
    const char *needs; /* set in a process of a job step; NULL: rank is enough */
    const char *job[2];
};

/* mpirun comes first: on a cluster it may start its processes by srun. */
static const struct names table[] = {
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     NULL,
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL, {"PMI_KVSNAME", "PMI_ID_JOB"}},
    /* A batch script has SLURM_PROCID, too, but is no task of a step with several. */
    {"srun",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_ID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

static enum status read_number(const char *name, int least, int most, int *value,
                               struct error *error) {
    const char *text = getenv(name);
    char *end = NULL;
    long number = text != NULL ? strtol(text, &end, 10) : -1;
    if (text == NULL || end == text || *end != '\0' || number < least || number > most) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s is '%.40s' in the environment: a number from %d to %d is needed", name,
                         text != NULL ? text : "", least, most);
    }
    *value = (int)number;
    return STATUS_OK;
}

static void name_job(const struct names *names, char job[160]) {
    const char *first = getenv(names->job[0]), *second = getenv(names->job[1]);
    if (first == NULL && second == NULL) { /* they have one parent */
        snprintf(job, 160, "%s-%ld", names->by, (long)getppid());
        return;
    }
    snprintf(job, 160, "%s-%.64s-%.64s", names->by, first != NULL ? first : "",
             second != NULL ? second : "");
}

static enum status read_all(const struct names *names, struct started *s, struct error *error) {
    enum { MOST = 1 << 20 };
    TRY(read_number(names->count, 1, MOST, &s->count, error));
    if (s->count == 1) {
        return STATUS_OK;
    }
    TRY(read_number(names->rank, 0, s->count - 1, &s->rank, error));
    s->local = s->rank;
    if (getenv(names->local) != NULL) {
        TRY(read_number(names->local, 0, s->count - 1, &s->local, error));
    }
    name_job(names, s->job);
    s->by = names->by;
    return STATUS_OK;
}

enum status started_read(struct started *s, struct error *error) {
    *s = (struct started){.count = 1};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct names *names = &table[i];
        bool is_task = names->needs == NULL || getenv(names->needs) != NULL;
        if (is_task && getenv(names->rank) != NULL && getenv(names->count) != NULL) {
            return read_all(names, s, error);
        }
    }
    return STATUS_OK;
}
