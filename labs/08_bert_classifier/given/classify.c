/* Says which class a text belongs to, on an engine of the course. */
#include "common/programs/classifier/classify.h"
#include "labs/08_bert_classifier/given/stages.h"

int main(int argc, char **argv) {
    return classify_main(argc, argv, stages_of_the_course());
}
