/* Options' words, squeue's answers as recorded from Slurm 22.05.8, and when a task is over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "grader/class/slurm/slurm_command.h"
#include "grader/class/slurm/slurm_ledger.h"
#include "grader/class/slurm/slurm_nodes.h"
#include "grader/class/slurm/slurm_queue.h"
#include "grader/class/slurm/slurm_store.h"
#include "grader/class/slurm/slurm_words.h"

#define NAME "warpbook_0123456789abcdef"

C_TEST(words, blanks_split_and_quotes_keep) {
    struct slurm_words words;
    ASSERT_TRUE(slurm_words_split(&words, "  --account=\"a b\" -p gpu\t--x=''", NULL) == STATUS_OK);
    ASSERT_TRUE(words.count == 4);
    EXPECT_STR_EQ("--account=a b", words.list[0]);
    EXPECT_STR_EQ("-p", words.list[1]);
    EXPECT_STR_EQ("gpu", words.list[2]);
    EXPECT_STR_EQ("--x=", words.list[3]);
    ASSERT_TRUE(slurm_words_split(&words, NULL, NULL) == STATUS_OK);
    EXPECT_TRUE(words.count == 0);
}

C_TEST(words, what_the_back_end_sets_is_refused) {
    static const char *const texts[] = {"--array=1", "-a 1",  "--job-name x", "-Jx",
                                        "--wait",    "'open", "script.sh"};
    struct slurm_words words;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error error = {0};
        EXPECT_INT_EQ(STATUS_INVALID_ARGUMENT, slurm_words_split(&words, texts[i], &error));
        EXPECT_TRUE(strstr(error.message, "--backend-options") != NULL);
    }
    EXPECT_INT_EQ(STATUS_OK, slurm_words_split(&words, "--wait-all-nodes=1 --exclusive", NULL));
}

C_TEST(words, long_text_is_refused) {
    char text[1100];
    struct slurm_words words;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    EXPECT_INT_EQ(STATUS_TOO_LONG, slurm_words_split(&words, text, NULL));
    for (size_t i = 0; i + 2 < 200; i += 2) {
        memcpy(text + i, "-x ", 3);
        text[i] = '-', text[i + 1] = ' ', text[i + 2] = '\0';
    }
    EXPECT_INT_EQ(STATUS_TOO_LONG, slurm_words_split(&words, text, NULL));
}

C_TEST(words, the_last_value_of_an_option_counts) {
    static const struct {
        const char *text, *value;
    } cases[] = {{"--exclude=n7", "n7"},
                 {"-p gpu --exclude n7", "n7"},
                 {"-xn7", "n7"},
                 {"-x n7 -p gpu", "n7"},
                 {"-x n7 --exclude=n8", "n8"},
                 {"--exclusive", NULL},
                 {"-p gpu", NULL},
                 {"--exclude", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slurm_words words;
        ASSERT_TRUE(slurm_words_split(&words, cases[i].text, NULL) == STATUS_OK);
        const char *value = slurm_words_value(&words, "--exclude", "-x");
        EXPECT_TRUE((value == NULL) == (cases[i].value == NULL));
        if (value != NULL && cases[i].value != NULL) {
            EXPECT_STR_EQ(cases[i].value, value);
        }
    }
}

static void end_on(struct slurm_nodes *nodes, const char *name, unsigned id, bool failed) {
    ASSERT_TRUE(slurm_nodes_end(nodes, name, id, failed, NULL) == STATUS_OK);
}

C_TEST(nodes, one_that_fails_every_task_is_excluded_once_another_works) {
    struct slurm_nodes nodes = {0};
    char list[NODES_LIST];
    end_on(&nodes, "n1", 1, true);
    end_on(&nodes, "n1", 2, true);
    ASSERT_TRUE(slurm_nodes_run(&nodes, "n2", NODES_WORK_S + 1, NULL) == STATUS_OK);
    EXPECT_TRUE(slurm_nodes_exclude(&nodes) == NULL); /* two are too few */
    end_on(&nodes, "n1", 3, true);
    const struct slurm_node *node = slurm_nodes_exclude(&nodes);
    ASSERT_TRUE(node != NULL);
    EXPECT_STR_EQ("n1", node->name);
    EXPECT_TRUE(slurm_nodes_exclude(&nodes) == NULL); /* told once */
    EXPECT_INT_EQ(1, (int)slurm_nodes_list(&nodes, "n9", list));
    EXPECT_STR_EQ("n9,n1", list);
    slurm_nodes_free(&nodes);
}

C_TEST(nodes, where_every_node_fails_none_is_excluded) {
    struct slurm_nodes nodes = {0};
    for (unsigned id = 1; id < 9; id++) {
        end_on(&nodes, "n1", id, true);
        end_on(&nodes, "n2", id + 10, true);
    }
    ASSERT_TRUE(slurm_nodes_run(&nodes, "n2", NODES_WORK_S / 2, NULL) == STATUS_OK);
    EXPECT_TRUE(slurm_nodes_exclude(&nodes) == NULL);
    slurm_nodes_free(&nodes);
}

C_TEST(nodes, the_last_that_works_is_kept) {
    struct slurm_nodes nodes = {0};
    end_on(&nodes, "n2", 1, false);
    for (unsigned id = 2; id < 5; id++) {
        end_on(&nodes, "n1", id, true);
    }
    ASSERT_TRUE(slurm_nodes_exclude(&nodes) != NULL);
    for (unsigned id = 2; id < 9; id++) {
        end_on(&nodes, "n2", id, true);
    }
    EXPECT_TRUE(slurm_nodes_exclude(&nodes) == NULL);
    slurm_nodes_free(&nodes);
}

C_TEST(nodes, one_task_that_fails_says_nothing_of_its_node) {
    struct slurm_nodes nodes = {0};
    end_on(&nodes, "n2", 9, false);
    for (int i = 0; i < 5; i++) {
        end_on(&nodes, "n1", 1, true);
        end_on(&nodes, "", 2, true); /* no node is known */
    }
    EXPECT_TRUE(slurm_nodes_exclude(&nodes) == NULL);
    end_on(&nodes, "n1", 2, false);
    end_on(&nodes, "n1", 3, true);
    end_on(&nodes, "n1", 4, true);
    EXPECT_TRUE(slurm_nodes_exclude(&nodes) == NULL); /* not in a row */
    slurm_nodes_free(&nodes);
}

/* squeue of an array of tasks 0 to 5 behind another user's jobs. */
static const char recorded[] = "1000|4|N/A|PENDING|Priority|cpu||(null)|elsewhere\n"
                               "1000|5|7|PENDING|Resources|gpu||a|b|other|name\n"
                               "0|1|3|PENDING|Priority|gpu||7|" NAME "\n"
                               "0|1|4|PENDING|Priority|gpu||7|" NAME "\n"
                               "1000|6|N/A|PENDING|Priority|gpu||7|" NAME "\n"
                               "0|1|0|COMPLETED|None|gpu|n1|7|" NAME "\n"
                               "0|1|1|NODE_FAIL|NodeDown|gpu|n1|7|" NAME "\n"
                               "0|1|2|RUNNING|None|gpu|n2|7|" NAME "\n"
                               "0|1|5|COMPLETING|None|gpu|n2|7|" NAME "\n"
                               "0|2|N/A|RUNNING|None|gpu|n2|7|" NAME "\n"
                               "0|3|5|FAILED|BadConstraints|gpu||(null)|job.sh\n";

static void read_recorded(struct slurm_queue *queue) {
    char text[sizeof recorded];
    memcpy(text, recorded, sizeof text);
    ASSERT_TRUE(slurm_queue_read(queue, text, 0, NAME, NULL) == STATUS_OK);
}

C_TEST(queue, only_our_tasks_are_taken) {
    struct slurm_queue queue = {0};
    read_recorded(&queue);
    ASSERT_TRUE(queue.count == 6);
    EXPECT_INT_EQ(3, (int)queue.jobs[0].index);
    EXPECT_INT_EQ(7, (int)queue.jobs[0].batch);
    EXPECT_INT_EQ(SLURM_WAITS, queue.jobs[0].state);
    EXPECT_STR_EQ("Priority", queue.jobs[0].reason);
    EXPECT_INT_EQ(SLURM_OVER, queue.jobs[3].state);
    EXPECT_STR_EQ("NODE_FAIL", queue.jobs[3].word);
    EXPECT_INT_EQ(SLURM_RUNS, queue.jobs[4].state);
    EXPECT_STR_EQ("n2", queue.jobs[4].node);
    EXPECT_STR_EQ("", queue.jobs[4].reason);
    EXPECT_INT_EQ(SLURM_RUNS, queue.jobs[5].state); /* COMPLETING: its last state follows */
    slurm_queue_free(&queue);
}

C_TEST(queue, place_counts_the_partition) {
    struct slurm_queue queue = {0};
    read_recorded(&queue);
    EXPECT_INT_EQ(2, (int)queue.place);
    EXPECT_INT_EQ(4, (int)queue.waiting);
    slurm_queue_free(&queue);
}

C_TEST(queue, foreign_text_is_an_error_and_nothing_is_empty) {
    struct slurm_queue queue = {0};
    char empty[] = "", foreign[] = "slurm_load_jobs error\n";
    EXPECT_INT_EQ(STATUS_OK, slurm_queue_read(&queue, empty, 0, NAME, NULL));
    EXPECT_TRUE(queue.count == 0);
    EXPECT_INT_EQ(STATUS_BAD_FORMAT, slurm_queue_read(&queue, foreign, 0, NAME, NULL));
    slurm_queue_free(&queue);
}

/* A ledger with batch 7 of six tasks, 11 to 16, submitted at time 100. */
static void six_tasks(struct ledger *ledger) {
    const unsigned ids[] = {11, 12, 13, 14, 15, 16};
    *ledger = (struct ledger){0};
    ASSERT_TRUE(ledger_add(ledger, 7, 1, ids, 6, 100, NULL) == STATUS_OK);
}

C_TEST(ledger, note_ends_a_task_once) {
    struct ledger ledger;
    struct backend_end ends[8];
    six_tasks(&ledger);
    ledger_note(&ledger, 7, 1, 75, "n1");
    ledger_note(&ledger, 7, 2, 137, "n1");
    ledger_note(&ledger, 7, 6, 0, "n1"); /* no such task */
    ledger_note(&ledger, 8, 0, 0, "n1");
    ASSERT_TRUE(ledger_take(&ledger, ends, 8, 101) == 2);
    EXPECT_INT_EQ(12, (int)ends[0].id);
    EXPECT_INT_EQ(BACKEND_EXITED, ends[0].how);
    EXPECT_INT_EQ(75, ends[0].code);
    EXPECT_TRUE(ends[0].by_node && !ends[1].by_node);
    EXPECT_STR_EQ("n1", ends[0].node);
    EXPECT_INT_EQ(BACKEND_SIGNALLED, ends[1].how);
    EXPECT_INT_EQ(9, ends[1].code);
    EXPECT_TRUE(ledger_take(&ledger, ends, 8, 1000) == 0);
    EXPECT_TRUE(!ledger_has(&ledger, 12) && ledger_has(&ledger, 11));
    EXPECT_INT_EQ(4, (int)ledger_active(&ledger));
    ledger_free(&ledger);
}

C_TEST(ledger, node_that_failed_is_lost_after_a_while) {
    struct ledger ledger;
    struct backend_end ends[8];
    struct slurm_queue queue = {0};
    six_tasks(&ledger);
    read_recorded(&queue);
    ledger_answer(&ledger, &queue, 110);
    EXPECT_TRUE(ledger_take(&ledger, ends, 8, 130) == 0); /* one answer is not enough */
    ledger_answer(&ledger, &queue, 112);
    EXPECT_TRUE(ledger_take(&ledger, ends, 8, 113) == 0); /* nor two that soon */
    ASSERT_TRUE(ledger_take(&ledger, ends, 8, 119) == 2); /* COMPLETED, but no note came */
    EXPECT_INT_EQ(BACKEND_LOST, ends[1].how);
    EXPECT_STR_EQ("job 1_1 on n1 ended without a result: NODE_FAIL, NodeDown", ends[1].why);
    EXPECT_TRUE(!ends[1].by_node); /* Slurm gives it no more itself */
    slurm_queue_free(&queue);
    ledger_free(&ledger);
}

C_TEST(ledger, task_that_comes_back_is_not_lost) {
    struct ledger ledger;
    struct backend_end ends[8];
    struct slurm_queue queue = {0}, nothing = {0};
    six_tasks(&ledger);
    ledger_answer(&ledger, &nothing, 99); /* asked before the batch was submitted */
    read_recorded(&queue);
    ledger_answer(&ledger, &nothing, 110);
    ledger_answer(&ledger, &queue, 115);
    ledger_answer(&ledger, &nothing, 120);
    ASSERT_TRUE(ledger_take(&ledger, ends, 8, 121) == 2); /* 11 and 12 were never under way */
    ledger_answer(&ledger, &nothing, 125);
    ASSERT_TRUE(ledger_take(&ledger, ends, 8, 129) == 4);
    EXPECT_STR_EQ("job 1_2 on n2 is gone from Slurm's queue without a result", ends[0].why);
    slurm_queue_free(&queue);
    ledger_free(&ledger);
}

C_TEST(ledger, earlier_run_is_taken_over) {
    struct ledger ledger;
    struct slurm_queue queue = {0};
    six_tasks(&ledger);
    read_recorded(&queue);
    ledger_answer(&ledger, &queue, 110);
    ledger_forget_away(&ledger);
    EXPECT_TRUE(!ledger_has(&ledger, 11) && !ledger_has(&ledger, 12));
    EXPECT_TRUE(ledger_has(&ledger, 13) && ledger_has(&ledger, 14) && ledger_has(&ledger, 16));
    EXPECT_TRUE(ledger_has_batch(&ledger, 7) && !ledger_has_batch(&ledger, 8));
    slurm_queue_free(&queue);
    ledger_free(&ledger);
}

C_TEST(ledger, says_what_runs_and_waits) {
    struct ledger ledger;
    struct slurm_queue queue = {0};
    char text[200];
    six_tasks(&ledger);
    read_recorded(&queue);
    ledger_answer(&ledger, &queue, 110);
    ledger_describe(&ledger, text, sizeof text);
    EXPECT_STR_EQ("2 running on n2, 2 waiting (Priority), first in the queue at place 2 of 4",
                  text);
    slurm_queue_free(&queue);
    ledger_free(&ledger);
}

C_TEST(command, says_why_it_failed) {
    struct slurm_reply reply;
    EXPECT_TRUE(slurm_command_run((char *[]){"echo", "a", NULL}, 60, &reply));
    EXPECT_STR_EQ("a\n", reply.text);
    slurm_reply_free(&reply);
    EXPECT_TRUE(!slurm_command_run(
        (char *[]){"sh", "-c", "echo 'sh: error: Batch job submission failed: no room' >&2; exit 1",
                   NULL},
        60, &reply));
    EXPECT_STR_EQ("sh: no room", reply.line);
    slurm_reply_free(&reply);
    EXPECT_TRUE(!slurm_command_run((char *[]){"no-such-program", NULL}, 60, &reply));
    EXPECT_TRUE(strstr(reply.line, "cannot be started") != NULL);
    slurm_reply_free(&reply);
    EXPECT_TRUE(!slurm_command_run((char *[]){"sleep", "1000", NULL}, 0.05, &reply));
    EXPECT_STR_EQ("sleep: no answer from slurmctld", reply.line);
    slurm_reply_free(&reply);
}

C_TEST(store, batches_are_there_after_a_restart) {
    char folder[] = "/tmp/slurm_store_XXXXXX", remove[100];
    static struct slurm_store store, again;
    struct ledger ledger = {0};
    unsigned batch = 0;
    ASSERT_TRUE(mkdtemp(folder) != NULL);
    ASSERT_TRUE(slurm_store_open(&store, folder, &ledger, 1, NULL) == STATUS_OK);
    ASSERT_TRUE(slurm_store_add(&store, (unsigned[]){3, 10000}, 2, &batch, NULL) == STATUS_OK);
    EXPECT_INT_EQ(1, (int)batch);
    ASSERT_TRUE(slurm_store_add(&store, (unsigned[]){4}, 1, &batch, NULL) == STATUS_OK);
    ASSERT_TRUE(slurm_store_void(&store, batch, NULL) == STATUS_OK);
    ASSERT_TRUE(slurm_store_open(&again, folder, &ledger, 2, NULL) == STATUS_OK);
    EXPECT_STR_EQ(store.name, again.name);
    EXPECT_TRUE(ledger_has(&ledger, 3) && ledger_has(&ledger, 10000) && !ledger_has(&ledger, 4));
    EXPECT_INT_EQ(3, (int)again.next);
    ledger_free(&ledger);
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    EXPECT_INT_EQ(0, system(remove));
}
