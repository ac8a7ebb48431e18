/* Feeds every file of the folders named on the command line to a fuzz target, in the order of
 * their names. Fails when there is none: an empty corpus would prove nothing. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* The file's bytes in memory of exactly their size, so that ASan sees a read beyond them. */
static uint8_t *read_file(const char *path, size_t *len)
{
    FILE    *file  = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long     size;

    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0) {
        rewind(file);
        bytes = malloc(size ? (size_t)size : 1);
        *len  = bytes ? fread(bytes, 1, (size_t)size, file) : 0;
    }
    fclose(file);
    return bytes;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_file(const char *folder, const char *name)
{
    char     path[4096];
    size_t   len = 0;
    uint8_t *bytes;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    bytes = read_file(path, &len);
    if (!bytes) {
        perror(path);
        return -1;
    }
    LLVMFuzzerTestOneInput(bytes, len);
    free(bytes);
    return 0;
}

/* Number of inputs fed; negative when the folder or one of its files could not be read. */
static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int             count  = scandir(folder, &entries, is_visible, alphasort);
    int             failed = 0;

    if (count < 0) {
        perror(folder);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        failed |= replay_file(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return failed ? -1 : count;
}

int main(int argc, char **argv)
{
    int total = 0;

    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);

        if (count <= 0) {
            fprintf(stderr, "%s: no corpus\n", argv[i]);
            return 1;
        }
        total += count;
    }
    printf("%d inputs\n", total);
    return total ? 0 : 1;
}
