/* Tells how often a classifier is right on a data set, on an engine of the course. */
#include "common/programs/classifier/evaluate.h"
#include "labs/08_bert_classifier/given/stages.h"

int main(int argc, char **argv) {
    return evaluate_main(argc, argv, stages_of_the_course());
}
