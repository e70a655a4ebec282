/* Calls of SCR 3.1 that the guide "from SCR" uses. */
#ifndef STUB_SCR_H
#define STUB_SCR_H

#define SCR_SUCCESS 0
#define SCR_MAX_FILENAME 1024
#define SCR_FLAG_CHECKPOINT 1
#define SCR_FLAG_OUTPUT 2

int SCR_Init(void);
int SCR_Finalize(void);
int SCR_Route_file(const char* name, char* file);
int SCR_Have_restart(int* flag, char* name);
int SCR_Start_restart(char* name);
int SCR_Complete_restart(int valid);
int SCR_Need_checkpoint(int* flag);
int SCR_Start_output(const char* name, int flags);
int SCR_Complete_output(int valid);
int SCR_Should_exit(int* flag);

#endif
