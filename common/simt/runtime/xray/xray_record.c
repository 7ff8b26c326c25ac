#include "common/simt/runtime/xray/xray_record.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/xray/xray_stalls.h"

static bool same_shape(const struct xray_launch *launch, const struct xray_facts *facts) {
    const struct xray_facts *known = &launch->facts;
    return strcmp(launch->kernel, facts->kernel) == 0 &&
           memcmp(known->grid, facts->grid, sizeof known->grid) == 0 &&
           memcmp(known->block, facts->block, sizeof known->block) == 0 &&
           known->dynamic_shared == facts->dynamic_shared;
}

bool xray_wants(struct xray *xray, const struct xray_facts *facts) {
    for (struct xray_launch *launch = xray->launches; launch != NULL; launch = launch->next) {
        if (same_shape(launch, facts)) {
            launch->launches++;
            return false;
        }
    }
    if (xray->launch_count == XRAY_LAUNCHES) {
        xray->dropped++;
        return false;
    }
    return true;
}

/* @return the number of a source file; XRAY_NO_FILE also without memory for it */
static size_t file_of(struct xray *xray, const char *name) {
    for (size_t n = 0; n < xray->file_count && name != NULL; n++) {
        if (strcmp(xray->files[n], name) == 0) {
            return n;
        }
    }
    char **files =
        name != NULL ? realloc(xray->files, (xray->file_count + 1) * sizeof *xray->files) : NULL;
    if (files == NULL) {
        return XRAY_NO_FILE;
    }
    xray->files = files;
    files[xray->file_count] = strdup(name);
    return files[xray->file_count] != NULL ? xray->file_count++ : XRAY_NO_FILE;
}

/* The launch's sum of a line; there is memory for one more than it has. */
static struct xray_line *line_of(struct xray_launch *launch, size_t file, uint32_t number) {
    for (size_t n = 0; n < launch->line_count; n++) {
        if (launch->lines[n].file == file && launch->lines[n].line == number) {
            return &launch->lines[n];
        }
    }
    struct xray_line *line = &launch->lines[launch->line_count++];
    *line = (struct xray_line){.file = file, .line = number};
    return line;
}

static uint64_t excess_of(const struct xray_access *access) {
    const struct simt_xray_request *r = &access->request;
    return r->cost > r->least ? (r->cost - r->least) * access->requests : 0;
}

static bool looks_the_same(const struct simt_xray_request *a, const struct simt_xray_request *b) {
    return a->mask == b->mask && a->bytes == b->bytes && a->space == b->space &&
           a->kind == b->kind && a->cost == b->cost &&
           memcmp(a->relative, b->relative, sizeof a->relative) == 0;
}

/* Keeps the requests that are furthest from what would do, and one of those that look the same. */
static void add_access(struct xray_line *line, const struct xray_access *access) {
    size_t at = line->access_count;
    for (size_t n = 0; n < line->access_count; n++) {
        if (looks_the_same(&line->accesses[n].request, &access->request)) {
            line->accesses[n].requests += access->requests;
            return;
        }
        if (at == line->access_count && excess_of(&line->accesses[n]) < excess_of(access)) {
            at = n;
        }
    }
    if (at == XRAY_REQUESTS) {
        return;
    }
    line->access_count += line->access_count < XRAY_REQUESTS;
    memmove(&line->accesses[at + 1], &line->accesses[at],
            (line->access_count - at - 1) * sizeof *line->accesses);
    line->accesses[at] = *access;
}

static void add_requests(struct xray_line *line, const struct simt_xray *raw, size_t number,
                         const struct simt_site *site) {
    for (size_t n = 0; n < 2; n++) {
        const struct simt_xray_request *request = &raw->requests[2 * number + n];
        if (request->mask != 0) {
            add_access(line,
                       &(struct xray_access){.request = *request, .requests = site->requests});
        }
    }
}

static void add_instruction(struct xray_line *line, const struct simt_xray_instruction *record,
                            const struct simt_sites *sites, const struct simt_xray *raw) {
    const struct simt_instruction *i = record->instruction;
    const struct simt_site *site = i->site < sites->count ? &sites->sites[i->site] : NULL;
    bool memory = site != NULL && site->source == i->source && site->requests > 0;
    line->instructions += record->executed;
    line->lanes += record->lanes;
    xray_add_demand(line, record, memory ? site : NULL);
    if (memory) {
        simt_site_add(&line->sum, site);
        add_requests(line, raw, i->site, site);
    }
}

static void add_lines(struct xray *xray, struct xray_launch *launch, const struct simt_sites *sites,
                      const struct simt_xray *raw) {
    for (size_t n = 0; n < raw->count; n++) {
        const struct simt_xray_instruction *record = &raw->instructions[n];
        const struct ptx_instruction *source = record->instruction->source;
        uint32_t number = 0;
        if (record->executed == 0) {
            continue;
        }
        const char *name = source != NULL ? ptx_source_line(sites->module, source, &number) : NULL;
        size_t file = file_of(xray, name);
        add_instruction(line_of(launch, file, file == XRAY_NO_FILE ? 0 : number), record, sites,
                        raw);
    }
}

void xray_add(struct xray *xray, const struct xray_facts *facts,
              const struct simt_counters *counters, const struct simt_sites *sites,
              const struct simt_xray *raw) {
    struct xray_launch *launch = calloc(1, sizeof *launch);
    struct xray_line *lines = calloc(raw->count + 1, sizeof *lines);
    char *kernel = strdup(facts->kernel);
    if (launch == NULL || lines == NULL || kernel == NULL) {
        free(launch);
        free(lines);
        free(kernel);
        struct simt_placement placement = facts->placement;
        simt_placement_free(&placement);
        return;
    }
    *launch = (struct xray_launch){
        .kernel = kernel, .facts = *facts, .launches = 1, .counters = *counters, .lines = lines};
    launch->facts.kernel = kernel;
    add_lines(xray, launch, sites, raw);
    xray_set_stalls(launch);
    struct xray_line *less = realloc(lines, (launch->line_count + 1) * sizeof *lines);
    launch->lines = less != NULL ? less : lines;
    struct xray_launch **link = &xray->launches;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = launch;
    xray->launch_count++;
}

void xray_free(struct xray *xray) {
    while (xray->launches != NULL) {
        struct xray_launch *launch = xray->launches;
        xray->launches = launch->next;
        free(launch->lines);
        free(launch->kernel);
        simt_placement_free(&launch->facts.placement);
        free(launch);
    }
    for (size_t n = 0; n < xray->file_count; n++) {
        free(xray->files[n]);
    }
    free(xray->files);
    *xray = (struct xray){0};
}
