/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over the files of its corpus, without libFuzzer: every build replays what fuzzing has found.
 *
 * Use: replay_frame CORPUS...    (folders, not searched deeper, or files)
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The file's bytes in memory of exactly their size, so that AddressSanitizer sees a read past the end. */
static uint8_t *read_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1);

    if (file && data && fread(data, 1, size, file) != size) {
        free(data);
        data = NULL;
    }
    if (file)
        (void)fclose(file);
    else {
        free(data);
        data = NULL;
    }
    return data;
}

static int replay_file(const char *path, size_t size)
{
    uint8_t *data = read_file(path, size);

    if (!data) {
        (void)fprintf(stderr, "replay: cannot read %s: %s\n", path, strerror(errno));
        return -1;
    }
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int replay_folder(const char *path);

/* The number of files replayed, or -1 after a message. */
static int replay_path(const char *path)
{
    struct stat info;

    if (stat(path, &info)) {
        (void)fprintf(stderr, "replay: cannot read %s: %s\n", path, strerror(errno));
        return -1;
    }
    if (S_ISDIR(info.st_mode))
        return replay_folder(path);
    return replay_file(path, (size_t)info.st_size);
}

static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    int count = 0;

    if (!folder) {
        (void)fprintf(stderr, "replay: cannot open %s: %s\n", path, strerror(errno));
        return -1;
    }
    while (count >= 0 && (entry = readdir(folder))) {
        char name[4096];

        if (entry->d_name[0] == '.' || entry->d_type == DT_DIR)
            continue;
        (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        count = replay_path(name) < 0 ? -1 : count + 1;
    }
    (void)closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;

    for (int i = 1; i < argc; i++) {
        int count = replay_path(argv[i]);

        if (count < 0)
            return EXIT_FAILURE;
        total += count;
    }
    if (total == 0) {
        (void)fprintf(stderr, "replay: the corpus is empty\n");
        return EXIT_FAILURE;
    }
    (void)printf("replayed %d inputs\n", total);
    return EXIT_SUCCESS;
}
