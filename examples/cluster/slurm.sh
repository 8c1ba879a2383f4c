#!/bin/bash
# One node a rank, one rank a task of Slurm's. Submit again after a failure: it goes on.
#SBATCH --job-name=conche
#SBATCH --ntasks=12
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --requeue

export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun conche train "$STREAM" --target "$TARGET" --nodes "$SLURM_NTASKS" --network mpi \
     --checkpoint state --resume --out model.conche
