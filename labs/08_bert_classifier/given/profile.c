/* Tells where a classifier's time goes, on an engine of the course. */
#include "common/programs/classifier/classifier_profile.h"
#include "labs/08_bert_classifier/given/stages.h"

int main(int argc, char **argv) {
    return classifier_profile_main(argc, argv, stages_of_the_course());
}
