#!/bin/bash
# One node a rank, one rank a task of Slurm's:
#     STREAM=months/ TARGET=pm25 sbatch --ntasks=12 slurm.sh
# Submit again after a failure: it goes on after the last task that was learnt.
#SBATCH --job-name=conche
#SBATCH --ntasks=12
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --requeue

export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# pmi2 is what conche[mpi]'s MPICH speaks; with a cluster's own MPI and an mpi4py built for it, use
# what that one wants (srun --mpi=list shows what there is). A mismatch is refused, not hidden.
srun --mpi=pmi2 conche train "$STREAM" --target "$TARGET" --nodes "$SLURM_NTASKS" --network mpi \
     --checkpoint state --resume --out model.conche
